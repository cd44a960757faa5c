"""Items: values placed in a hot, warm or cold tier under a canonical key. For applications that store state."""
