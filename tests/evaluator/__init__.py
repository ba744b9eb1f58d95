"""The evaluator, its keys, and the function that it evaluates."""
