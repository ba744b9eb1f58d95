"""The options of signatures: whose the input must be, and the key by which what is handed on is signed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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
