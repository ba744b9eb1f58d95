"""What a stage costs beside its limit: the cryptography of the same run (docs/adr/0012)."""
