"""Build the documentation site: the project's Markdown pages, and the API reference from docstrings."""
