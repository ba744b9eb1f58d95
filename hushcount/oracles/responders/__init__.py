"""Responders: how a cell becomes a report. One file each; unary and weighted design have their place here.

A new responder is one module with a frozen dataclass that meets `base.Responder`, and its case in
`tests/hushcount/oracles/cases.py`.
"""
