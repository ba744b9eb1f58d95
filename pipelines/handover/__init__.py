"""The hand-over: what one party signs and the next one checks before it reads."""
