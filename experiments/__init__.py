"""The papers' experiments, run on the product's own mechanisms: measured values are compared with predicted ones."""
