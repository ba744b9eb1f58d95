"""Passes: client tokens that an issuer signed blindly, one for each period and party (Privacy Pass, docs/adr/0053)."""
