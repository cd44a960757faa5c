"""The command `retain`: for whoever develops agents in a project, and for operators of a deployment. Not uploaded."""
