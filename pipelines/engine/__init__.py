"""Engines: which Beam runner executes a job, what must be there first, what a graph may hold, and why a job failed."""
