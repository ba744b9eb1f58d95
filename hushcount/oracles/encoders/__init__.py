"""Encoders put items into cells; each encoder has its own module.

A new encoder needs one module with a frozen dataclass that implements `base.Encoder`, a test, and a catalogue entry.
`base.Universal` and `pool.Pooled` are base classes for families of encoders. The contract tests in
`tests/hushcount/oracles` cover every entry of the catalogue; `make vectors` writes its vectors.
"""
