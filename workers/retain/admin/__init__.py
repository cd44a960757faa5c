"""The operator's side: Access, the route table and scheduled work. For whoever runs a deployment."""
