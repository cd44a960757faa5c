"""Fault points in a staged copy of the Worker, and a driver that kills workerd at each of them: see docs/testing.md."""
