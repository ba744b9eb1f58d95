"""Questions to results as people ask them: which results each is of, and its answer as tables and sentences."""
