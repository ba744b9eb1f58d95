"""A deployment: its settings file, its campaigns, its collector."""
