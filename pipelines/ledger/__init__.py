"""The ledger: the cost of each release, and whether one more release fits into the limit."""
