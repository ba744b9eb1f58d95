"""One page of a whole deployment: what its campaigns counted, and how they fare."""
