"""Who may send, how much, and why a request is refused."""
