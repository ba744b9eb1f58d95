"""A deployment for one machine that runs as it is: what must be known, what is planned from it, and its files."""
