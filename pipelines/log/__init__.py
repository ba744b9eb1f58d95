"""The log of a party and campaign: what it decided, entry by entry, and what that comes to (docs/adr/0043)."""
