"""Planning: which mechanism, with which parameters, for which error."""
