"""How a service writes to the store: the caller that starts the service supplies a function for its kind of store."""

from __future__ import annotations

from collections.abc import Callable, Iterable

WriteWhole = Callable[[str, Iterable[bytes]], None]
"""A function that writes a file of the store; the file is whole and durable when the function returns."""
