"""The evaluator: answers blinded questions with the epoch's key, and counts them (docs/adr/0035)."""
