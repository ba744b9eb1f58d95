"""Responders turn a cell into a report; each responder has its own module.

A new responder is one module with a frozen dataclass that meets `base.Responder`, its test, and an entry in the
catalogue. `base.Sized` is the base class of responders that support s cells.
The contract tests in `tests/hushcount/oracles` run over every entry; `make vectors` writes its vectors.
"""
