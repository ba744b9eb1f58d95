"""Engines: which Beam runner executes a job, what must be there first, and why it failed."""
