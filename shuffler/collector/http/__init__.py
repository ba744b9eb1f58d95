"""Answers requests, and bounds what a connection may cost. Start with `app`."""
