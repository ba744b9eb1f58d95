"""The log of a party and campaign: what it decided, entry by entry, and the fold that says what follows (docs/adr/0043)."""
