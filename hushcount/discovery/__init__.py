"""Discovery: sealed pairs, and the rule that keeps a bin."""
