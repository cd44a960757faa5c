"""The platform's adapters of the ports. Only they and `bindings.py`, which creates them, know the platform."""
