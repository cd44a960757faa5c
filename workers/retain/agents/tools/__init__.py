"""What an agent can call: built-in tools, delegates, Python functions, tools of the gateway, and stubs."""
