"""Answers requests. Start with `app`."""
