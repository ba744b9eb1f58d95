"""From epoch to epoch: the next dictionary, its review, and items over time."""
