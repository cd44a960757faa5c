"""The life of items, as one state machine: every feature that moves, hides or removes a value, against a plain model."""
