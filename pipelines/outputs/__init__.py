"""Outputs: the files that a job writes, all of them or none, with a summary that counts every report."""
