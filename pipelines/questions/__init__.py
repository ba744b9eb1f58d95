"""Questions of people to results: what a question reads, and its answer in tables and sentences, and how sure it is."""
