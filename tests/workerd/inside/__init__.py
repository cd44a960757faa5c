"""What runs inside workerd: the contract cases on the real bindings, and probes of what only the platform can show."""
