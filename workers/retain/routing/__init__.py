"""Routes as data: one table defines the routing, the parsing, the guards and the documentation of every route.

For the areas that serve HTTP. Only `bodies` and `queries` import pydantic, so that the proxy's path does not load it.
"""
