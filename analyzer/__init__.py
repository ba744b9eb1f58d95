"""The analyzer: opens permuted reports, tallies and estimates them, and opens the values that discovery released."""
