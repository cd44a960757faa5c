"""Items: values placed in a hot, warm or cold tier under a canonical key. For applications that keep state of their own."""
