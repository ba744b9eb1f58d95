"""The audit: what `status` and `doctor` find in a deployment."""
