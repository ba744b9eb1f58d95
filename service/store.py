"""What a service does with the store, as whoever starts it gives it: it knows no kind of store."""

from __future__ import annotations

from collections.abc import Callable, Iterable

WriteWhole = Callable[[str, Iterable[bytes]], None]
"""Writes a file of the store; it is whole and durable when this returns."""
