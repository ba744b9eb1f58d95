"""The questions of `hushcount ask`: read the results, and answer in tables and sentences."""
