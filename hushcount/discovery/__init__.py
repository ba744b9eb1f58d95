"""Discovery: sealed pairs of hash and value, and the keep rule for bins."""
