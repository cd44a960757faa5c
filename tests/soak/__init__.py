"""Run the state machines that are marked `soak` for hours: see docs/testing.md."""
