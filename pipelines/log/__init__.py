"""The log of a party and campaign: its decisions, what they come to, and what shows that it lacks one (docs/adr/0043)."""
