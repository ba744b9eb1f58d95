"""The log of a party and campaign: its entries, what they come to, and what shows that it lacks any (docs/adr/0043)."""
