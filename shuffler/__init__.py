"""The shuffler: caps each client, strips all metadata, drops duplicates, permutes.

It holds envelopes and cannot open a report. Read in this order: `separate`, which separates senders from reports,
`cap`, `mix`, and `shuffle`, which composes them. They use `tags` and `equality` from `hushcount/wire/`.
"""
