"""Privacy: what a run guarantees, to whom, for which unit and which neighbours."""
