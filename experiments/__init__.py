"""The papers' experiments, run on the product's own mechanisms: what was measured beside what was predicted."""
