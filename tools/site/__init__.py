"""Build the documentation site: the project's Markdown pages as they are, and the API reference from docstrings."""
