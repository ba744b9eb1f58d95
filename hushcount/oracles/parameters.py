"""The parameters of a frequency oracle, by the letters of docs/mathematics.md: k, m, s, p, B, b, f, seed."""

from __future__ import annotations

from collections.abc import Mapping

Value = int | float | str
Parameters = Mapping[str, Value]


def integer(parameters: Parameters, key: str) -> int:
    """Return an integer parameter; ValueError if the parameter is not an integer."""
    value = parameters[key]
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{key} is {value!r}, must be an integer")
    return value


def real(parameters: Parameters, key: str) -> float:
    """Return a real parameter; ValueError if the parameter is not a number."""
    value = parameters[key]
    if isinstance(value, (bool, str)):
        raise ValueError(f"{key} is {value!r}, must be a number")
    return float(value)
