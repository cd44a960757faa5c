"""Agents as other protocols know them: AG-UI's events, and OpenAI's chat completions."""
