"""What `hushcount run` says in numbers, for an operator's monitoring."""
