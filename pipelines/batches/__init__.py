"""Batches: which segments are shuffled together, and what the state and the store know of each batch."""
