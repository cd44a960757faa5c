"""The execution of runs: the loop, control from outside, and streams."""
