"""The client, asynchronous. `python -m tools.clients` in the checkout's root makes the synchronous one from it."""
