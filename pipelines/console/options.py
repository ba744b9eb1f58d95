"""Options that several commands take."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

CampaignOption = Annotated[Path, typer.Option("--campaign", help="Campaign file.")]
OutOption = Annotated[str, typer.Option("--out", help="Output directory, local or of any file system that Beam knows.")]
KeysOption = Annotated[
    Path,
    typer.Option(
        "--keys",
        help="Directory with this party's private key, env:NAME, or gcp-secret://projects/P/secrets/S/versions/V.",
    ),
]
ConfidenceOption = Annotated[
    float, typer.Option(help="Of the intervals: each item's alone, and all together.", min=0.5, max=0.999999)
]
FalsePositivesOption = Annotated[
    float,
    typer.Option(
        metavar="RATE", help="Of items that nobody holds, how many count as detected.", min=1e-15, max=0.499999
    ),
]
LedgerOption = Annotated[
    Path | None,
    typer.Option("--ledger", help="Ledger to charge the release to, made where it is missing; see hushcount ledger."),
]
ConfigOption = Annotated[Path, typer.Option("--config", help="Deployment file, .toml or .json.")]


class PartyName(str, Enum):
    """Which of the parties that open."""

    both = "both"
    aux_server = "aux-server"
    analyzer = "analyzer"
