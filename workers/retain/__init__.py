"""Retain: agents that remember, on Cloudflare Workers.

The library. It never imports the platform: what it needs of it comes in as the ports of `retain.ports`.
"""

__version__ = "0.1.0"
