"""The shuffler: caps each client, strips all metadata, drops duplicates, permutes.

The shuffler holds envelopes, but cannot open a report. Read in this order: `separate`, which separates senders from
reports, `cap`, `mix`, and `shuffle`, which composes them. These modules use `tags` and `equality` from
`hushcount/wire/`.
"""
