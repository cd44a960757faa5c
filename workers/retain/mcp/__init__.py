"""Model Context Protocol over streamable HTTP: the server's side, without the tools that it serves."""
