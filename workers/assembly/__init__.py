"""The composition root: what each area of the Worker works with, made from the platform.

One module per area, with ordinary imports. `root` imports an area's module when the area is first asked for, so that the
proxy's first request loads the gateway alone.
"""
