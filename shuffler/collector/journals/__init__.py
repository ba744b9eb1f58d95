"""Makes reports durable before they are acknowledged. Start with `writer`; `journal` is the file format."""
