"""The operator's side of a deployment: Access, the route table and scheduled work."""
