"""The shuffler: drops duplicates, caps each client, strips all metadata, waits for a minimum batch, permutes.

It holds envelopes and cannot open a report. Read in this order: `partition`, `cap`, `deduplicate`, `permute`, and
`shuffle`, which puts them together.
"""
