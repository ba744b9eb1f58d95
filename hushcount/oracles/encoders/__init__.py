"""Encoders: in which cell an item falls. One file each; the Hadamard encoder has its place here.

A new encoder is one module with a frozen dataclass that meets `base.Encoder`, and its case in
`tests/hushcount/oracles/cases.py`.
"""
