"""The shuffler: caps each client, strips all metadata, drops duplicates, permutes.

It holds envelopes and cannot open a report. Read in this order: `separate`, which parts senders from reports, `cap`,
`mix`, and `shuffle`, which composes them. Their tools are `tags`, `places` and `equality` in `hushcount/wire/`.
"""
