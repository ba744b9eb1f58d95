"""Files of settings as plain mappings: JSON, or TOML where Python or a package reads it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from hushcount.errors import UsageError


def read_mapping(path: Path, what: str = "campaign file") -> dict[str, Any]:
    """Read a file, .json or .toml, as the mapping that it holds, not yet validated; `what` it is, for the errors.

    Raises:
        UsageError: another ending, unreadable, no UTF-8, or not what its ending says.
    """
    if path.suffix not in (".json", ".toml"):
        raise UsageError(f"{what} is {path}, must end in .json or .toml")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {what} {path}: {getattr(error, 'strerror', None) or error}") from None
    try:
        data = _parse_toml(text, path) if path.suffix == ".toml" else json.loads(text)
    except ValueError as error:
        raise UsageError(f"{what} {path} is not {path.suffix[1:].upper()}: {error}") from None
    if not isinstance(data, dict):
        raise UsageError(f"{what} {path} holds a {type(data).__name__}, must hold an object")
    return data


def _parse_toml(text: str, path: Path) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        try:
            import tomli as tomllib
        except ImportError:
            raise UsageError(
                f"reading {path} on Python 3.10 needs the package tomli: install it or use .json"
            ) from None
    return tomllib.loads(text)
