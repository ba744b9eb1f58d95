"""Secrets wrapped by a key service: on disk is only what the service, asked each time, turns back."""

from __future__ import annotations

from collections.abc import Callable

from hushcount.errors import HushcountError, UsageError
from keys import aws_kms, gcp_kms

Crypt = Callable[[str, bytes, dict[str, str]], bytes]
"""From the name of a service's key, bytes, and what is authenticated with them."""
_SERVICES: dict[str, tuple[Crypt, Crypt]] = {
    gcp_kms.SCHEME: (gcp_kms.encrypt, gcp_kms.decrypt),
    aws_kms.SCHEME: (aws_kms.encrypt, aws_kms.decrypt),
}


def wrap(service: str, secret: bytes, role: str, id: str) -> bytes:
    """Return a secret wrapped by a key of a key service, bound to its role and id.

    Args:
        service: gcp-kms://projects/.../cryptoKeys/NAME or aws-kms://arn:aws:kms:...:key/ID.
        secret: 32 bytes.
        role: whose it is.
        id: of its public key.

    Raises:
        UsageError: there is no such service, or no credentials for it.
        HushcountError: it did not wrap the secret, or would not unwrap it again.
    """
    encrypt, decrypt, name = _functions(service)
    context = _context(role, id)
    wrapped = encrypt(name, secret, context)
    if decrypt(name, wrapped, context) != secret:
        raise HushcountError(f"{service} does not unwrap what it wrapped: nothing was written")
    return wrapped


def unwrap(service: str, wrapped: bytes, role: str, id: str) -> bytes:
    """Return the secret that was wrapped for that role and id.

    Raises:
        UsageError: there is no such service, or no credentials for it.
        HushcountError: it did not unwrap it.
    """
    _, decrypt, name = _functions(service)
    secret = decrypt(name, wrapped, _context(role, id))
    if len(secret) != 32:
        raise HushcountError(f"{service} unwrapped {len(secret)} bytes, must be 32: it wrapped something else")
    return secret


def _functions(service: str) -> tuple[Crypt, Crypt, str]:
    for scheme, (encrypt, decrypt) in _SERVICES.items():
        if service.startswith(scheme):
            return encrypt, decrypt, service.removeprefix(scheme)
    raise UsageError(f"key service is {service!r}, must begin with {' or '.join(_SERVICES)}")


def _context(role: str, id: str) -> dict[str, str]:
    """Return what is authenticated with the secret: a wrapped secret put in another's place does not unwrap."""
    return {"hushcount-role": role, "hushcount-key": id}
