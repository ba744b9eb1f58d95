"""The statistics of questions: totals of groups, changes, differences, with intervals and p-values."""
