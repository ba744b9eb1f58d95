"""Engines: run a job on a Beam runner, check first what the runner needs, and say why a job failed."""
