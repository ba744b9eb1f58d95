"""Encoders put items into cells; each encoder has its own module.

A new encoder is one module with a frozen dataclass that meets `base.Encoder`, its test, and an entry in the
catalogue. `base.Universal` and `pool.Pooled` are base classes for families of encoders.
The contract tests in `tests/hushcount/oracles` run over every entry; `make vectors` writes its vectors.
"""
