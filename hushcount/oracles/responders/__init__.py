"""Responders: how a cell becomes a report, one file each.

A new responder is one module with a frozen dataclass that meets `base.Responder`, its test, and a line of the
catalogue. `base.Sized` holds what responders share that support s cells.
The contract tests in `tests/hushcount/oracles` run over every line; `make vectors` writes its vectors.
"""
