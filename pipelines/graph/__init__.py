"""A job's graph, built and searched for keys and for code that a worker lacks, before it is sent."""
