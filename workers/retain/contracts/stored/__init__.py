"""What the backends leave in a deployment's stores. The Worker has it too, for its maintenance and its eraser."""
