"""Which results a question is about, and its answers as tables."""
