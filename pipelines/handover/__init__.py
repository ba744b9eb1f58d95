"""The hand-over: the list of hops, and what a party signs and the next party checks before it reads."""
