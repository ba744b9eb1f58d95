"""Windows: their calendar, the rule that closes them, and the segments that they take, leave waiting or drop."""
