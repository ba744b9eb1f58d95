"""Windows: which there are, when one closes, what it takes, what goes on waiting, and what is too late."""
