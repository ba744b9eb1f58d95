"""The shuffler: caps each client, strips all metadata, drops duplicates, permutes.

It holds envelopes and cannot open a report. Read in this order: `separate`, which parts who sent from what was sent,
`cap`, `mix`, and `shuffle`, which puts them together. Their tools are `tags.py`, `places.py` and `equality.py` in
`hushcount/wire/`.
"""
