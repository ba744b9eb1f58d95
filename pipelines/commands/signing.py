"""The options of signatures: whose the input must be, and the key by which what is handed on is signed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from hushcount.public_keys import VerifyKeyPart
    from keys.roles import SigningRole
    from keys.store import KeyReference

SignedByOption = Annotated[
    Path | None,
    typer.Option(
        "--signed-by",
        help="public.json of the party that wrote the input, which must be signed by one of its keys and lie in the "
        "folder that it was signed for.",
    ),
]
SignWithOption = Annotated[
    str | None,
    typer.Option("--sign-with", help="Directory of the party's signing key, or env:NAME: sign what is handed on."),
]


def signer_of(keys: str | None, role: SigningRole) -> KeyReference | None:
    """Return the key that a party signs with what it hands on, or None."""
    if keys is None:
        return None
    from keys.store import active_key

    return active_key(keys, role)


def verified_by(keys: Path | None, role: SigningRole) -> tuple[VerifyKeyPart, ...]:
    """Return the keys of which one must have signed the input; empty: signatures are not checked."""
    if keys is None:
        return ()
    from keys.store import verify_keys

    return verify_keys(keys, role)
