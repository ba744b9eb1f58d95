"""The audit: the checks and counts of `status` and `doctor`."""
