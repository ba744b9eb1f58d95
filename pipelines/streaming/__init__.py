"""A job that stays up: a run puts orders, and the job carries them out. The job decides nothing (docs/adr/0044)."""
