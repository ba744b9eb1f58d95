"""The estimates of all results as one data set for SQL and notebooks (docs/data.md)."""
