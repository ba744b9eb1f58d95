"""Turn the text of an answer to a prompt of `hushcount init` into a value, or say in a sentence why it is none."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError
from typer import BadParameter

from hushcount.campaigns.dictionary import Dictionary
from hushcount.campaigns.parts import Identifier, NumberPart
from hushcount.collection.tilings import Tiling, Weekday
from hushcount.collection.windows import duration
from hushcount.errors import UsageError
from hushcount.formats.models import explain
from hushcount.maths.probability import require_epsilon
from hushcount.window_starts import UNITS
from pipelines.console.options import whole_number
from pipelines.console.prompts import repeated
from pipelines.files.item_files import read_listed
from pipelines.jobs.number_bins import number_part

OPEN = "open"
"""The answer that means that no file lists the values."""
_RANGE = re.compile(r"[-+.0-9e]+:[-+.0-9e]+", re.ASCII)
NONE = "no"
"""The answer that means that the campaign has no discovery."""


def id_of(text: str) -> str:
    """Return the id of a campaign; UsageError if a text is none, as in all functions here."""
    try:
        return TypeAdapter[str](Identifier).validate_python(text)
    except ValidationError as error:
        raise UsageError(explain(error, "id")) from None


@dataclass(frozen=True)
class Values:
    """What people report: items of a file, numbers by their bins, or any text if nothing is listed.

    Attributes:
        known: the listed values.
        dictionary: file of the listed values.
        number: range, bins and unit of numbers.
        options: those that ask for the numbers.
    """

    known: Dictionary | None = None
    dictionary: Path | None = None
    number: NumberPart | None = None
    options: str = ""


def values_of(text: str, bins: str | None = None, unit: str | None = None) -> Values:
    """Return the values of a file; of a range of numbers, as 0:60000, with these bins and this unit; or OPEN."""
    if _RANGE.fullmatch(text) and (part := number_part(text, bins, unit, None, mean=False)) is not None:
        options = {"--number": text, "--bins": bins, "--unit": unit}
        given = [word for name, said in options.items() if said is not None for word in (name, said)]
        return Values(known=Dictionary(part.items), number=part, options=shlex.join(given))
    if bins is not None or unit is not None:
        raise UsageError("bins and unit are of numbers: give --number LOW:HIGH, or leave them out")
    if text == OPEN:
        return Values()
    if not text.isprintable():
        raise UsageError(f"dictionary is {repeated(text)}, must be the path of a file, in printable characters")
    try:
        # Expand ~ in a path that is typed at the prompt; on a command line, the shell has expanded it.
        path = Path(text).expanduser()
    except RuntimeError:
        path = Path(text)
    return Values(read_listed(path), path)


def clients_of(text: str) -> int:
    """Return a number of people."""
    try:
        number = whole_number(text)
    except BadParameter:
        number = -1
    if number < 1:
        raise UsageError(f"clients is {repeated(text)}, must be a whole number from 1, as 20000 or 2e4")
    return number


def epsilon_of(text: str) -> float:
    """Return a local epsilon."""
    return _number("epsilon", text, "a number")


def discovery_of(text: str) -> float | None:
    """Return the epsilon of discovery; None for NONE."""
    return None if text.lower() == NONE else _number("discovery-epsilon", text, f"'{NONE}' or a number")


def _number(name: str, text: str, form: str) -> float:
    try:
        number = float(text)
        require_epsilon(number)
    except ValueError:
        raise UsageError(f"{name} is {repeated(text)}, must be {form} from 0.0001 to 40") from None
    return number


def tiling_of(text: str, zone: str | None, starts: Weekday | None) -> Tiling:
    """Return the windows of a length, or the days, weeks or months of a time zone."""
    if zone is not None and text not in UNITS:
        raise UsageError(f"zone is {repeated(zone)}, must be left out unless window is day, week or month")
    if starts is not None and text != "week":
        raise UsageError(f"starts is {starts!r}, must be left out unless window is week")
    if text in UNITS:
        try:
            return Tiling(text, zone or "UTC", starts or "monday")
        except ValueError as error:
            raise UsageError(str(error)) from None
    try:
        return Tiling(duration(text))
    except ValueError:
        raise UsageError(
            f"window is {repeated(text)}, must be day, week or month, or a whole number and s, m, h or d, up to 366d, "
            "as in 1h or 1d"
        ) from None
