"""Records of private keys, in JSON, with the secret in hexadecimal digits or wrapped by a key service.

    {"role": "analyzer", "id": "16 hexadecimal digits", "secret": "64 hexadecimal digits"}
    {"role": "analyzer", "id": "16 hexadecimal digits", "wrapped_by": "gcp-kms://...", "wrapped": "base64"}

A key file has one record. A text source, env:NAME or gcp-secret://NAME, has one record a line, or only the digits of
one secret. No error shows a part of a record.

The text of a key file is overwritten in memory as soon as its secret is read, and the digits of the secret are copied
into no other object. Python cannot overwrite the 32 bytes of the secret, an environment variable, or the answer of a
key service.
"""

from __future__ import annotations

import base64
import json
import os
import re
from binascii import unhexlify
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from hushcount.errors import FormatError, HushcountError, UsageError
from hushcount.formats.client_files import read_private_by
from hushcount.formats.reading import parse_object
from keys import aws, gcp
from keys.private import SECRET_BYTES
from keys.roles import Role
from keys.undumped import keep_out_of_dumps

_ENV = "env:"
_LONGEST = 16384
_SECRET = re.compile(rb'"secret"\s*:\s*"([0-9a-f]{64})"')
_WIPED = "0" * 2 * SECRET_BYTES
_Crypt = Callable[[str, bytes, dict[str, str]], bytes]
_SERVICES: dict[str, tuple[_Crypt, _Crypt]] = {
    gcp.KMS_SCHEME: (gcp.encrypt, gcp.decrypt),
    aws.KMS_SCHEME: (aws.encrypt, aws.decrypt),
}
"""Each key service's functions to encrypt and decrypt, which take a key name, bytes, and a context to authenticate."""


def key_path(directory: Path, role: Role, id: str) -> Path:
    """Return the path of a private key in a key directory."""
    return directory / f"{role}-{id}.key"


def record(role: Role, id: str, secret: bytes, service: str | None) -> str:
    """Return the content of a key file; `service` names the key with which a key service wraps the secret, if any."""
    fields: dict[str, str] = {"role": role, "id": id}
    if service is None:
        fields["secret"] = secret.hex()
    else:
        fields |= {"wrapped_by": service, "wrapped": base64.b64encode(wrap(service, secret, role, id)).decode()}
    return json.dumps(fields) + "\n"


def read_file(path: Path, role: Role, id: str) -> bytes:
    """Return the secret in the private key file of a key with this role and id."""
    fields, secret = _read_record(path)
    if fields.get("role") != role or fields.get("id") != id:
        raise another_key(path, role, id)
    return _secret(fields, secret, f"key file {path}")


def another_key(path: Path, role: Role, id: str) -> UsageError:
    """Return the error for a key file that holds another key than the file's name says."""
    return UsageError(f"key file {path} holds another key, must hold {role} key {id}: restore the file of that name")


def wrapped_by(path: Path) -> str | None:
    """Return the name of the key that wraps the secret of a key file, or None; the secret is not unwrapped."""
    name = _read_record(path)[0].get("wrapped_by")
    return None if name is None else str(name)


def is_text(source: str) -> bool:
    """Return whether a source of keys is env:NAME or gcp-secret://NAME; any other source is a directory."""
    return source.startswith((_ENV, gcp.SECRET_SCHEME))


def name_of(source: str) -> str:
    """Return the name of a text source for messages."""
    if source.startswith(_ENV):
        return f"environment variable {source.removeprefix(_ENV)}"
    return f"secret {gcp.secret_name(source)}"


def read_text(source: str, role: Role) -> list[tuple[str | None, bytes]]:
    """Return id and secret of each key of a role in a text source; the id is None if the source holds only digits."""
    keep_out_of_dumps()
    name = name_of(source)
    variable = source.removeprefix(_ENV)
    text = gcp.read_secret(gcp.secret_name(source)) if variable == source else os.environ.get(variable)
    if text is None:
        raise UsageError(f"{name} is not set: set it to a private key file's content")
    if _is_hexadecimal(text.strip()):
        return [(None, bytes.fromhex(text.strip()))]
    records = [_fields(_encoded(line, name), name) for line in text.splitlines() if line.strip()]
    if not records:
        raise UsageError(f"{name} is empty: set it to a private key file's content")
    ours = [(fields, secret) for fields, secret in records if fields.get("role") == role]
    return [(str(fields.get("id")), _secret(fields, secret, name)) for fields, secret in ours]


def wrap(service: str, secret: bytes, role: str, id: str) -> bytes:
    """Wrap a secret with a key of a key service, bind it to role and id of the secret's key, and return it."""
    crypt, name = _key_of(service)
    context = _context(role, id)
    wrapped = crypt[0](name, secret, context)
    if crypt[1](name, wrapped, context) != secret:
        raise HushcountError(f"{service} does not unwrap the secret that it just wrapped: nothing was written")
    return wrapped


def unwrap(service: str, wrapped: bytes, role: str, id: str) -> bytes:
    """Return the secret that a key service wrapped for this role and id."""
    crypt, name = _key_of(service)
    secret = crypt[1](name, wrapped, _context(role, id))
    if len(secret) != SECRET_BYTES:
        raise HushcountError(
            f"{service} unwrapped {len(secret)} bytes, must be {SECRET_BYTES}: it wrapped something else"
        )
    return secret


def _key_of(service: str) -> tuple[tuple[_Crypt, _Crypt], str]:
    for scheme, crypt in _SERVICES.items():
        if service.startswith(scheme):
            return crypt, service.removeprefix(scheme)
    raise UsageError(f"key service is {service!r}, must begin with {' or '.join(_SERVICES)}")


def _context(role: str, id: str) -> dict[str, str]:
    """Return the context that binds a wrapped secret to role and id, so that it does not unwrap in another record."""
    return {"hushcount-role": role, "hushcount-key": id}


def _read_record(path: Path) -> tuple[dict[str, Any], bytes | None]:
    """Return the fields of a key file, and its secret unless the secret is wrapped."""
    keep_out_of_dumps()
    text = read_private_by(path, "key", _text_of)
    if text is None:
        raise UsageError(f"cannot read key file {path}: No such file or directory")
    try:
        if len(text) > _LONGEST:
            raise FormatError(f"key file {path} is too long, must have at most {_LONGEST:,} bytes")
        return _fields(text, f"key file {path}")
    finally:
        text[:] = bytes(len(text))


def _text_of(stream: IO[bytes]) -> bytearray:
    """Read without a buffer into an array of fixed size: a buffer or resizing would leave copies of the secret."""
    descriptor = stream.fileno()
    text = bytearray(min(os.fstat(descriptor).st_size, _LONGEST + 1))
    os.readv(descriptor, [text])
    return text


def _encoded(line: str, name: str) -> bytearray:
    with suppress(UnicodeEncodeError):
        return bytearray(line.encode())
    raise _no_key(name)


def _fields(text: bytearray, name: str) -> tuple[dict[str, Any], bytes | None]:
    """Return a record's fields, with zeros for the secret's digits, and the secret; wipe the digits in `text`."""
    secret = None
    if found := _SECRET.search(text):
        start, end = found.span(1)
        with memoryview(text) as view, view[start:end] as digits:
            secret = unhexlify(digits)
        text[start:end] = _WIPED.encode()
    with suppress(FormatError):
        return parse_object(bytes(text), name), secret
    # The error is raised outside the handler, so that it does not carry the parser's exception, which holds the text.
    raise _no_key(name)


def _secret(fields: dict[str, Any], secret: bytes | None, name: str) -> bytes:
    """Return a record's secret; a wrapped secret is unwrapped."""
    if secret is not None and fields.get("secret") == _WIPED:
        return secret
    service, wrapped = (fields.get(field) for field in ("wrapped_by", "wrapped"))
    if not isinstance(service, str) or not isinstance(wrapped, str):
        raise _no_key(name)
    try:
        raw = base64.b64decode(wrapped, validate=True)
    except ValueError:
        raise _no_key(name) from None
    return unwrap(service, raw, str(fields.get("role")), str(fields.get("id")))


def _is_hexadecimal(text: str) -> bool:
    return len(text) == 2 * SECRET_BYTES and all(letter in "0123456789abcdef" for letter in text)


def _no_key(name: str) -> UsageError:
    return UsageError(f"{name} is not a private key that hushcount keys new made")
