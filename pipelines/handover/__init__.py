"""The hand-over: which hops there are, and what one party signs and the next one checks before it reads."""
