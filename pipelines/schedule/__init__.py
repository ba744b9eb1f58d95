"""The schedule: what `hushcount run` does, hop by hop."""
