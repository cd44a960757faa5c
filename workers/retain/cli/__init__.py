"""The command `retain`: for developers of agents in a project, and for operators of a deployment. Not uploaded."""
