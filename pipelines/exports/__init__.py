"""Estimates as a data set for other programs."""
