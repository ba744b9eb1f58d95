"""The commands of `hushcount`, one file for each group; they parse, call a job, and print."""
