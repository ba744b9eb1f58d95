"""Who is told, at the end of a run, what changed in the newest window of a campaign."""
