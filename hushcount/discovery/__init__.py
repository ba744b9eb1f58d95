"""Discovery: sealed pairs, and the rule by which a bin is kept."""
