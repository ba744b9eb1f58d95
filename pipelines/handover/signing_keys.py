"""The keys of signatures: by which a party signs what it hands on, and by which the next one checks it.

Keys are imported where one is named: a party that does not sign has no package of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hushcount.errors import UsageError

if TYPE_CHECKING:
    from hushcount.campaigns.public_keys import VerifyKeyPart
    from keys.roles import SigningRole
    from keys.store import KeyReference


def signer_of(keys: Path | str | None, role: SigningRole) -> KeyReference | None:
    """Return the key that a party signs with what it hands on, or None.

    Raises:
        UsageError: there is none, it cannot be used, or what signs is not installed.
    """
    if keys is None:
        return None
    try:
        from keys.store import active_key
    except ModuleNotFoundError as error:
        if error.name != "keys":
            raise
        raise UsageError(
            "what is handed on cannot be signed: the package keys is not in this image; run it in the one that is "
            "built with --target signing, or of Dataflow's --target shuffler-signing"
        ) from None

    return active_key(keys, role)


def verified_by(keys: Path | None, role: SigningRole) -> tuple[VerifyKeyPart, ...]:
    """Return the keys of which one must have signed the input; empty: signatures are not checked."""
    if keys is None:
        return ()
    from keys.store import verify_keys

    return verify_keys(keys, role)
