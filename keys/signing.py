"""Sign with a private key by its reference. Checking needs none: `hushcount.campaigns.signatures`."""

from __future__ import annotations

from hushcount.campaigns.signatures import Purpose, Signature
from keys.store import KeyReference


def sign(reference: KeyReference, payload: bytes, purpose: Purpose) -> Signature:
    """Open a signing key, sign with it, and forget it.

    Args:
        reference: of `keys.store.active_key(source, role)`.
        payload: the bytes to sign; whoever verifies needs the same.
        purpose: what they are.

    Raises:
        UsageError: the key cannot be used, or is of a role that opens.
    """
    return reference.read_signing().sign(payload, purpose)
