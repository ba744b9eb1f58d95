"""A job that stays up: a run puts orders, and the job carries them out. It decides nothing (docs/adr/0044)."""
