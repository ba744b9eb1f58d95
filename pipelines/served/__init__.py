"""The page of a deployment for a team: a read-only HTTP server, which answers people in HTML and programs in JSON."""
