"""Engines: which Beam runner executes a job, what must be there first, and why a job failed."""
