"""Outputs: what a job leaves behind, as a whole or not at all, with a summary that counts every report."""
