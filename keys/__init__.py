"""Make, store and open private keys. Parties take secrets from this package only; the shuffler may not import it."""
