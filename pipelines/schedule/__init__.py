"""The schedule: the steps of `hushcount run`."""
