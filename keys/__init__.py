"""Private keys: make, store, open. The only code that sees one; the shuffler may not import it."""
