"""The schedule: the steps of `hushcount run`, each hop of each window, and what it deletes when retention is over."""
