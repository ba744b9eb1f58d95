"""Options that several commands share, the limits of these options, and functions that read the values of options."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import BadParameter, Context, Option

from hushcount.campaigns.dictionary import MOST_ITEMS
from hushcount.collection.windows import duration
from hushcount.errors import UsageError
from hushcount.numbers import MOST_BINS
from pipelines import DEPLOYMENT

if TYPE_CHECKING:
    from hushcount.maths.objectives import Objective
    from hushcount.oracles.parameters import Value
    from hushcount.strata import Where
    from pipelines.engine.runner import Engine

MOST_REPORTS = 10**12
MOST_SEED = (1 << 63) - 1
MOST_WINDOWS = 1_000_000
USUAL_BINS = "log:64"
"""The bins of a range that is given without --bins."""
_MOST_DEPTH = 64


def whole_number(text: str | int) -> int:
    """Return the whole number that a text like 1000000 or 1e6 means; BadParameter unless in 0..MOST_REPORTS."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise BadParameter(f"{text!r} is not a valid integer.") from None
    # Test for NaN before the comparison, because Decimal raises if NaN is compared.
    if number.is_nan() or not 0 <= number <= MOST_REPORTS or number != int(number):
        raise BadParameter(f"{text} is not a whole number in the range 0<=x<={MOST_REPORTS}.")
    return int(number)


def whole(text: str, *names: str, **more: Any) -> Any:
    """Return an option for a whole number like 1000000 or 1e6, with this help; `more` as `Option` takes it."""
    return Option(*names, help=text, parser=whole_number, metavar="INTEGER", **more)


Json = Annotated[bool, Option("--json", help="Print the result as JSON on standard output.")]
Explain = Annotated[bool, Option("--explain", help="Show the guarantee in full, not in two lines.")]
Overwrite = Annotated[bool, Option("--overwrite", help="Replace an older result.")]
Runner = Annotated[
    str, Option("--runner", help="Beam runner, such as DirectRunner; options of Beam follow after a bare --.")
]
_CONFIG = ("--config", "-c")
_VARIABLE = "HUSHCOUNT_CONFIG"
Config = Annotated[Path, Option(*_CONFIG, envvar=_VARIABLE, help="Deployment file, .toml or .json.")]
HERE = Path(DEPLOYMENT)
"""The deployment file in the working directory, read if neither --config nor HUSHCOUNT_CONFIG is given."""
CampaignFile = Annotated[Path, Option("--campaign", help="Campaign file.")]
CampaignId = Annotated[
    str | None, Option("--campaign", help="Id of the campaign.", show_default="the deployment's, if it has one only")
]
Out = Annotated[str, Option("--out", help="Output directory: local, or a store that Beam can write to.")]
Keys = Annotated[
    Path,
    Option("--keys", help="Directory of this party's key, env:NAME, or gcp-secret://projects/P/secrets/S/versions/V."),
]
PartyName = Literal["both", "aux-server", "analyzer"]
Party = Annotated[PartyName, Option("--party", help="Which party to act for.")]
Items = Annotated[Path | None, Option("--items", help="File of items to estimate, one a line.")]
Confidence = Annotated[float, Option(help="Confidence of each interval, and of all together.", min=0.5, max=0.999999)]
FalsePositives = Annotated[
    float, Option(metavar="RATE", help="Share of absent items that count as detected.", min=1e-15, max=0.499999)
]
Ledger = Annotated[Path | None, Option("--ledger", help="Ledger to charge; created if missing.")]
Begins = Annotated[str | None, Option("--begins", help="Start, as in 2026-12-01T00:00:00Z.", show_default="now")]
Settings = Annotated[
    list[str] | None,
    Option("--set", help="name=value: k, m, s, p, B, objective (l2, the default, or mse), or target_share."),
]
SignedBy = Annotated[
    Path | None,
    Option("--signed-by", help="public.json of the input's writer: refuse input that it did not sign for this folder."),
]
SignWith = Annotated[
    str | None, Option("--sign-with", help="Sign the output: the signing key's directory, or env:NAME.")
]

# Options of hushcount ask: the results to query, the items, and the output.
Campaigns = Annotated[
    list[str] | None,
    Option(
        "--campaign",
        help="Id of the campaign; with --result its campaign file, or one for each result.",
        show_default="the deployment's, if it has one only",
    ),
]
Results = Annotated[
    list[str] | None, Option("--result", help="Folder that hushcount job analyze wrote; may be repeated.")
]
Window = Annotated[str | None, Option("--window", help="Only this window, as 2026-12-24 or 2026-12-24T13:00Z.")]
Last = Annotated[int, Option("--last", help="Number of newest windows.", min=1, max=MOST_WINDOWS)]
LastAsked = Annotated[
    int | None, Option("--last", help="Number of newest windows.", min=1, max=MOST_WINDOWS, show_default="30")
]
LastAdded = Annotated[
    int | None, Option("--last", help="Number of newest windows, added up.", min=1, max=MOST_WINDOWS, show_default="1")
]
RangeFrom = Annotated[
    str | None, Option("--from", help="First month, day or hour, as 2026-12-24.", show_default="the oldest")
]
RangeTo = Annotated[
    str | None, Option("--to", help="Last month, day or hour; its windows count too.", show_default="the newest")
]
Month = Annotated[str | None, Option("--month", help="All windows that begin in a month, as 2026-12.")]
Against = Annotated[
    str | None,
    Option(
        "--against",
        help="Windows to compare with: how many before those, or a month, day or hour.",
        show_default="as many, or the month before",
    ),
]
Item = Annotated[list[str] | None, Option("--item", help="An item; may be repeated.")]
Declared = Annotated[
    list[str] | None, Option("--group", help="A group of [analyzer.groups] in the deployment; may be repeated.")
]
Glob = Annotated[str | None, Option("--glob", help="The sum of dictionary items that match, as 'shop-*'.")]
Prefix = Annotated[str | None, Option("--prefix", help="The sum of dictionary items that begin with this, as fr/.")]
ItemFile = Annotated[str | None, Option("--file", help="The sum of a file's items: one a line, or a .csv with item.")]
All = Annotated[bool, Option("--all", help='The sum of all dictionary items, that is, all but "other".')]
ByPrefix = Annotated[
    str | None,
    Option("--by-prefix", metavar="SEPARATOR", help="Items are paths: a sum for each node, as of a/ and a/b/."),
]
Axes = Annotated[
    list[str] | None,
    Option("--by", help="What clients are broken down by, as version=FILE of its values, one a line; may be repeated."),
]
Number = Annotated[
    str | None,
    Option("--number", help="Values are numbers in a range, as 0:60000; a client reports the bin of a number."),
]
Bins = Annotated[
    str | None,
    Option(
        "--bins",
        help="With --number: linear:N or log:N; without: a file of edges, one a line.",
        show_default=USUAL_BINS,
    ),
]
Unit = Annotated[str | None, Option("--unit", help="Unit of the numbers, as ms.")]
Mean = Annotated[
    bool, Option("--mean", help="With --number: clients report for the mean of the numbers, by the mechanism line.")
]
Count = Annotated[
    int | None, Option("--count", min=1, max=MOST_BINS - 1, help="Values are counts 0, 1, ..., this one or more.")
]
PublicAxes = Annotated[
    list[str] | None,
    Option(
        "--public-by",
        help="The same of what a server learns anyway: told openly, not protected, and of no cost in error.",
    ),
]
By = Annotated[list[str] | None, Option("--by", help="An axis: a row for each of its coordinates; may be repeated.")]
Coordinates = Annotated[
    list[str] | None,
    Option("--where", metavar="AXIS=VALUE", help="Only reports with this coordinate; may be repeated."),
]
OtherCoordinates = Annotated[
    list[str] | None,
    Option("--against", metavar="AXIS=VALUE", help="Compare --where with this coordinate instead; may be repeated."),
]
Depth = Annotated[int, Option("--depth", help="Levels of --by-prefix.", min=1, max=_MOST_DEPTH)]
FromRight = Annotated[bool, Option("--from-right", help="The last part of a path is the top, as in domain names.")]
Show = Annotated[int, Option("--show", help="Rows to show; --json and --out have all.", min=1, max=MOST_ITEMS)]
OutTable = Annotated[str | None, Option("--out", help="Table to write, .csv or .parquet.")]
At = Annotated[str, Option("--at", help="Percentiles, with commas between them; each above 0 and below 100%.")]
EdgesOut = Annotated[
    Path | None, Option("--edges", help="File to write: edges of the next epoch's bins, near these percentiles.")
]
Together = Annotated[bool, Option("--together", help="Of all windows together, not of each.")]
Population = Annotated[int | None, whole("Scale a sample to so many clients, as 1e8.", "--population")]
Plot = Annotated[Path | None, Option("--plot", help="Chart to write, .png or .svg, with error bands.")]


def share_of(text: str, option: str) -> float:
    """Return a share in (0, 1], from 1% or 0.01; UsageError, with the name of the option: the text is none."""
    try:
        share = float(text.removesuffix("%")) / (100.0 if text.endswith("%") else 1.0)
    except ValueError:
        share = 0.0
    # Without a sign, 1 may mean 1 % or everybody.
    if not 0.0 < share <= 1.0 or (share == 1.0 and not text.endswith("%")):
        raise UsageError(f"{option} is {text[:60]!a}, must be above 0 and at most 100%, as in 1% or 0.01")
    return share


def engine(context: Context, runner: str) -> Engine:
    """Return the engine of a job from --runner and the Beam options after `--`.

    Raises:
        UsageError: an option is not one of Beam's.
    """
    # Imported only here, because Beam takes a second to import.
    from pipelines.engine.runner import Engine
    from pipelines.files.beam_options import unknown_options

    if context.args and not context.args[0].startswith("-"):
        raise UsageError(f"{context.args[0]!r} is not an argument of this command: see --help")
    unknown = unknown_options(context.args)
    if unknown:
        raise UsageError(f"option --{unknown[0]} is neither this command's nor Beam's: see --help")
    return Engine(runner, tuple(context.args))


def parse_settings(pairs: list[str] | None) -> tuple[dict[str, Value], Objective]:
    """Return the parameters and the objective that --set options give.

    Raises:
        UsageError: an option is not name=value, or the objective or the target_share is invalid.
    """
    settings: dict[str, Value] = {}
    for pair in pairs or ():
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise UsageError(f"--set is {pair!r}, must be name=value")
        settings[name] = _number(text)
    share = settings.pop("target_share", None)
    if share is not None and not isinstance(share, int | float):
        raise UsageError(f"target_share is {share!r}, must be a number in [0, 1]")
    return settings, objective_of(settings.pop("objective", None), share)


def objective_of(name: Value | None, target_share: float | None) -> Objective:
    """Return the objective to plan for; it is l2 if neither argument is given.

    Raises:
        UsageError: a share is given with another objective than target, or an argument is out of its range.
    """
    from hushcount.maths.objectives import Objective

    if target_share is not None and name not in (None, "target"):
        raise UsageError(f"objective is {name!r} with a target_share, must be 'target': leave one of them out")
    try:
        kind = name or ("l2" if target_share is None else "target")
        return Objective(kind, float(target_share or 0.0))  # type: ignore[arg-type]  # Objective checks it
    except ValueError as error:
        raise UsageError(str(error)) from None


def coordinates(option: str, texts: Sequence[str] | None) -> Where:
    """Return the coordinates that an option gives, AXIS=VALUE each; UsageError: another form, or an axis twice."""
    given: dict[str, str] = {}
    for text in texts or ():
        axis, equals, value = text.partition("=")
        if not (axis and equals and value) or axis in given:
            raise UsageError(f"{option} is {text!a}, must be AXIS=VALUE, as platform=linux, once for each axis")
        given[axis] = value
    return tuple(given.items())


def _number(text: str) -> Value:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def begins_at(text: str | None) -> datetime | None:
    """Return the time that a text like 2026-12-01T00:00:00Z means; None for None.

    Raises:
        UsageError: the text is not a time, or has no time zone.
    """
    if text is None:
        return None
    try:
        # Python 3.10 cannot read a time that ends with Z.
        time = datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith("Z") else text)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise UsageError(f"begins is {text!r}, must be a time with its zone, as in 2026-12-01T00:00:00Z")
    return time.astimezone(timezone.utc)


def span(name: str, text: str) -> timedelta:
    """Return the duration that an option's text like 15m or 7d means.

    Raises:
        UsageError: the text is not a duration.
    """
    try:
        return duration(text)
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from None
