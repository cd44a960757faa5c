"""The composition root: the parts of each area of the Worker, made from the platform.

One module per area, with ordinary imports. `root` imports an area's module on the area's first use, so that the
proxy's first request loads only the gateway.
"""
