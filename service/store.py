"""How a service writes to the store: the caller that starts it supplies the function for its kind of store."""

from __future__ import annotations

from collections.abc import Callable, Iterable

WriteWhole = Callable[[str, Iterable[bytes]], None]
"""Writes a file of the store; it is whole and durable when this returns."""
