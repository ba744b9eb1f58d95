"""Responders turn a cell into a report; each responder has its own module.

A new responder needs one module with a frozen dataclass that implements `base.Responder`, a test, and a catalogue
entry. `base.Sized` is the base class of responders that support s cells. The contract tests in
`tests/hushcount/oracles` cover every entry of the catalogue; `make vectors` writes its vectors.
"""
