"""Private key files: one key each, in JSON, its secret in hexadecimal digits or wrapped by a key service.

    {"role": "analyzer", "id": "16 hexadecimal digits", "secret": "64 hexadecimal digits"}
    {"role": "analyzer", "id": "16 hexadecimal digits", "wrapped_by": "gcp-kms://...", "wrapped": "base64"}

The same text may stand in an environment variable, one key a line, or there only the secret's digits.
"""

from __future__ import annotations

import base64
import json
import os
import stat
from pathlib import Path
from typing import Any

from hushcount.errors import FormatError, UsageError
from hushcount.formats.reading import open_regular, parse_object, take
from keys.gcp_secrets import SCHEME, read_secret, secret_name
from keys.roles import Role
from keys.wrapping import unwrap, wrap

ENV = "env:"
_LONGEST = 16384


def key_path(directory: Path, role: Role, id: str) -> Path:
    """Return where a directory has a private key."""
    return directory / f"{role}-{id}.key"


def record(role: Role, id: str, secret: bytes, wrapped_by: str | None) -> str:
    """Return a key file's content; the secret is wrapped by that key of a key service, if one is named.

    Raises:
        HushcountError: the key service did not answer, or not with what it can unwrap again.
    """
    fields: dict[str, str] = {"role": role, "id": id}
    if wrapped_by is None:
        fields["secret"] = secret.hex()
    else:
        fields |= {"wrapped_by": wrapped_by, "wrapped": base64.b64encode(wrap(wrapped_by, secret, role, id)).decode()}
    return json.dumps(fields) + "\n"


def read_file(path: Path, role: Role, id: str) -> bytes:
    """Return the 32 secret bytes of a key file.

    Raises:
        UsageError: missing, unreadable, open to others, or not that key's file; its content is never named.
        HushcountError: the key service did not unwrap it.
    """
    (fields,) = _read_records(path)
    if fields.get("role") != role or fields.get("id") != id:
        raise UsageError(f"key file {path} is not the key of the role {role} that it is named after")
    return _secret(fields, f"key file {path}")


def wrapped_by(path: Path) -> str | None:
    """Return the name of the key that a key file is wrapped by, or None; nothing is unwrapped.

    Raises:
        UsageError: as `read_file`.
    """
    (fields,) = _read_records(path)
    name = fields.get("wrapped_by")
    return None if name is None else str(name)


def is_text(source: str) -> bool:
    """Return whether a source of keys is a text of its own, env:NAME or gcp-secret://NAME, and no directory."""
    return source.startswith((ENV, SCHEME))


def name_of(source: str) -> str:
    """Return what a sentence calls a source that is a text."""
    if source.startswith(ENV):
        return f"environment variable {source.removeprefix(ENV)}"
    return f"secret {secret_name(source)}"


def read_text(source: str, role: Role) -> list[tuple[str | None, bytes]]:
    """Return id and secret of a role's keys in a source that is a text; the id of bare digits is not told: None.

    Raises:
        UsageError: the variable is not set, or the text holds no key; it is never repeated.
        HushcountError: the secret cannot be read, or the key service did not unwrap a key in it.
    """
    where = name_of(source)
    text = os.environ.get(source.removeprefix(ENV)) if source.startswith(ENV) else read_secret(secret_name(source))
    if text is None:
        raise UsageError(f"{where} is not set: set it to a private key file's content")
    if _hexadecimal(text.strip()):
        return [(None, bytes.fromhex(text.strip()))]
    lines = [line for line in text.splitlines() if line.strip()]
    records = [_fields(line, where) for line in lines]
    if not records:
        raise UsageError(f"{where} is empty: set it to a private key file's content")
    return [(str(fields.get("id")), _secret(fields, where)) for fields in records if fields.get("role") == role]


def _read_records(path: Path) -> list[dict[str, Any]]:
    try:
        with open_regular(path) as stream:
            mode = stat.S_IMODE(os.fstat(stream.fileno()).st_mode)
            raw = take(stream, _LONGEST, f"key file {path}")
    except OSError as error:
        raise UsageError(f"cannot read key file {path}: {error.strerror}") from None
    if mode & 0o077:
        raise UsageError(f"key file {path} has mode {mode:04o}, must be 0600: chmod 600 {path}")
    return [_fields(raw, f"key file {path}")]


def _fields(raw: str | bytes, where: str) -> dict[str, Any]:
    try:
        return parse_object(raw.encode() if isinstance(raw, str) else raw, where)
    except (FormatError, UnicodeEncodeError):
        # Not even a position of what is in a key file is repeated.
        raise _no_key(where) from None


def _secret(fields: dict[str, Any], where: str) -> bytes:
    """Return a record's secret, unwrapped."""
    held = fields.get("secret")
    if isinstance(held, str) and _hexadecimal(held):
        return bytes.fromhex(held)
    service, wrapped = fields.get("wrapped_by"), fields.get("wrapped")
    if not isinstance(service, str) or not isinstance(wrapped, str):
        raise _no_key(where)
    try:
        raw = base64.b64decode(wrapped, validate=True)
    except ValueError:
        raise _no_key(where) from None
    return unwrap(service, raw, str(fields.get("role")), str(fields.get("id")))


def _hexadecimal(text: str) -> bool:
    return len(text) == 64 and all(letter in "0123456789abcdef" for letter in text)


def _no_key(where: str) -> UsageError:
    return UsageError(f"{where} is not a private key of hushcount keys new")
