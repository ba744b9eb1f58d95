"""The shuffler: caps each client, strips all metadata, drops duplicates, permutes.

It holds envelopes and cannot open a report. Read in this order: `partition`, `cap`, `deduplicate`, `permute`, and
`shuffle`, which puts them together.
"""
