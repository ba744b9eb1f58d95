"""Encoders: in which cell an item falls, one file each.

A new encoder is one module with a frozen dataclass that meets `base.Encoder`, its test, and a line of the
catalogue. `base.Universal` and `pool.Pooled` hold what families of encoders share.
The contract tests in `tests/hushcount/oracles` run over every line; `make vectors` writes its vectors.
"""
