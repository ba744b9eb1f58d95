"""The ledger: what each release costs, and whether one more fits into the limit."""
