"""Monitoring: the page of a deployment, alerts about changes, and metrics."""
