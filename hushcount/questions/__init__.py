"""Questions to counted results: what a group adds up to, what changed, what differs, and how sure that is."""
