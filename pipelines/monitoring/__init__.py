"""Monitoring: what a deployment shows and tells of itself: its page, alerts about changes, and metrics."""
