"""Options that several questions take: where the results are, which items are meant, and what is written."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from hushcount.campaigns.dictionary import MOST_ITEMS

_MOST_WINDOWS = 1_000_000
_MOST_DEPTH = 64

Config = Annotated[Path | None, Option("--config", help="Deployment file, .toml or .json; or give --result.")]
Campaigns = Annotated[
    list[str], Option("--campaign", help="Id of the campaign; with --result its campaign file, or one for each result.")
]
StoreConfig = Annotated[Path, Option("--config", help="Deployment file, .toml or .json.")]
StoreCampaigns = Annotated[list[str], Option("--campaign", help="Id of the campaign.")]
Results = Annotated[list[str] | None, Option("--result", help="Folder that hushcount analyze wrote; may be repeated.")]
Window = Annotated[str | None, Option("--window", help="Only this one, as 2026-12-24 or 20261224T130000Z.")]
Last = Annotated[int, Option("--last", help="Number of windows to ask, the newest.", min=1, max=_MOST_WINDOWS)]
Windows = Annotated[int, Option("--last", help="Newest windows, added up.", min=1, max=_MOST_WINDOWS)]
Against = Annotated[
    int | None,
    Option("--against", help="Windows before these, added up.", min=1, max=_MOST_WINDOWS, show_default="as --last"),
]
From = Annotated[str | None, Option("--from", help="Window before, as 2026-12-24.", show_default="the one before --to")]
To = Annotated[str | None, Option("--to", help="Window after.", show_default="the newest")]
Item = Annotated[list[str] | None, Option("--item", help="An item; may be repeated.")]
Declared = Annotated[
    list[str] | None, Option("--group", help="A group of [analyzer.groups] in the deployment; may be repeated.")
]
Glob = Annotated[str | None, Option("--glob", help="The sum of listed items that match, as 'shop-*'.")]
Prefix = Annotated[str | None, Option("--prefix", help="The sum of listed items that begin so, as fr/.")]
ItemFile = Annotated[str | None, Option("--file", help="The sum of a file's items: one a line, or a .csv with item.")]
All = Annotated[bool, Option("--all", help='The sum of all listed items: what is not "other".')]
ByPrefix = Annotated[
    str | None,
    Option("--by-prefix", metavar="SEPARATOR", help="Items are paths: a sum for each node, as of a/ and a/b/."),
]
Depth = Annotated[int, Option("--depth", help="Levels of --by-prefix.", min=1, max=_MOST_DEPTH)]
FromRight = Annotated[bool, Option("--from-right", help="The last part of a path is the top, as of domains.")]
Show = Annotated[int, Option("--show", help="Rows to show; --json and --out have all.", min=1, max=MOST_ITEMS)]
OutTable = Annotated[str | None, Option("--out", help="Table to write, .csv or .parquet.")]
Plot = Annotated[Path | None, Option("--plot", help="Chart to write, .png or .svg, with error bands.")]
