"""Measure the cost of each stage beside its limit, the cryptography alone in the same run (docs/adr/0012)."""
