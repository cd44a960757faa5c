"""What the contracts' backends leave in a deployment's stores: for its maintenance and its eraser, so in the Worker too."""
