"""The platform's adapters of the ports. With `bindings.py`, which hands them out, the only code that knows the platform."""
