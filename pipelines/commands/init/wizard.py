"""The seven prompts of `hushcount init`: each has an option and a check of the answer, and most have a default."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from textwrap import fill
from typing import Any, Literal

from hushcount.collection.tilings import Tiling
from hushcount.collection.windows import duration_text
from hushcount.errors import UsageError
from pipelines.commands.init import typed
from pipelines.commands.init.proposals import DAY, WEEK, Aim
from pipelines.commands.init.typed import Values
from pipelines.console.answer import note
from pipelines.console.options import share_of
from pipelines.console.prompts import prompt
from pipelines.files.item_files import table_note

Name = Literal["id", "values", "clients", "share", "window", "epsilon", "discovery"]
_SHARE = "5%"
_COLUMNS = 79


@dataclass(frozen=True)
class Answers:
    """The answers to the prompts.

    Attributes:
        id: id of the campaign.
        values: what people report.
        aim: the share that matters, and how many people report in a window.
        tiling: how time is cut into windows.
        epsilon: local epsilon of one report.
        discovery: epsilon of discovery; None: no discovery.
    """

    id: str
    values: Values
    aim: Aim
    tiling: Tiling
    epsilon: float
    discovery: float | None

    @property
    def window(self) -> timedelta:
        """The length of a window; of months, the shortest."""
        return self.tiling.usual

    @property
    def clients(self) -> int:
        """The least number of people who report in a window."""
        return self.aim.people_in(self.window)

    @property
    def notes(self) -> list[str]:
        """Notes on the file of the values."""
        path, known = self.values.dictionary, self.values.known
        said = None if path is None or known is None else table_note(path, known)
        return [] if said is None else [said]

    @property
    def delta(self) -> float:
        """Delta of the shuffled guarantee and of discovery: at most a hundredth of 1 / clients."""
        return min(1e-8, 0.01 / self.clients)


@dataclass(frozen=True)
class Known:
    """What is known once some prompts are answered.

    Attributes:
        span: the length of the window that the number of clients is asked for.
        minimum_batch: the fewest reports in a release.
        values: the answers up to now.
    """

    span: timedelta
    minimum_batch: int
    values: dict[Name, Any]

    @property
    def aim(self) -> Aim:
        """The aim of the first four answers."""
        return Aim.of(
            self.values["values"].known, self.values["clients"], self.span, self.values["share"], self.minimum_batch
        )


@dataclass(frozen=True)
class Prompt:
    """One prompt.

    Attributes:
        text: the text of the prompt, which fits in one line of a narrow terminal.
        option: the option that answers the prompt on the command line.
        read: turns the text of an answer into a value; UsageError says why a text is invalid.
        default: returns the default answer, given the earlier values; None: the prompt has no default.
        before: returns lines that a person reads before the prompt.
    """

    text: str
    option: str
    read: Callable[[str], Any]
    default: Callable[[Known], str | None]
    before: Callable[[Known], list[str]] = lambda _: []


def prompts(
    directory: Path, tiling: Tiling, tiled: Callable[[str], Tiling], valued: Callable[[str], Values]
) -> dict[Name, Prompt]:
    """Return the prompts in the order in which they are asked; the directory's name is the default of the id.

    Args:
        tiling: the windows in which people are counted.
        tiled: reads windows.
        valued: reads what people report.
    """
    length = tiling.length
    window = f"window of {duration_text(length)}" if isinstance(length, timedelta) else length
    return {
        "id": Prompt(
            "What is the campaign called, in files and commands?", "--id", typed.id_of, lambda _: _proposed(directory)
        ),
        "values": Prompt(
            f"Which file lists the values? (0:60000: numbers; '{typed.OPEN}': any text)",
            "--number LOW:HIGH, --dictionary FILE, or --open-domain for any text",
            valued,
            lambda _: None,
        ),
        "clients": Prompt(
            f"How many people report in a {window}, at least? (as 20000)",
            "--clients",
            typed.clients_of,
            lambda known: f"{max(10_000, known.minimum_batch)}",
        ),
        "share": Prompt(
            "Which share of these people is the smallest that matters? (as 1%)",
            "--want-share",
            partial(share_of, option="want-share"),
            lambda _: _SHARE,
        ),
        "window": Prompt(
            "How long is a window? (as 1h, day or month; 7d begins on Thursdays)",
            "--window",
            tiled,
            lambda known: duration_text(known.aim.window()),
            _why_this_window,
        ),
        "epsilon": Prompt(
            "Epsilon of a report? (lower: more privacy; higher: smaller errors)",
            "--epsilon",
            typed.epsilon_of,
            lambda known: f"{known.aim.epsilon(known.values['window'].usual):g}",
            _why_this_epsilon,
        ),
        "discovery": Prompt(
            f"Epsilon for finding unlisted values, with counts? (as 1; '{typed.NONE}': find none)",
            "--discovery-epsilon, or --no-discovery",
            typed.discovery_of,
            lambda known: "1" if known.values["values"].known is None else typed.NONE,
        ),
    }


def answers(
    directory: Path,
    minimum_batch: int,
    given: Mapping[Name, str | None],
    tiled: Callable[[str], Tiling],
    valued: Callable[[str], Values],
    *,
    asks: bool,
) -> Answers:
    """Return the answers: an option's value if it is given, else if `asks` a person's answer, else the default.

    Args:
        tiled: reads windows.
        valued: reads what people report.

    Raises:
        UsageError: an answer is invalid; or a prompt has neither an option's value nor a default, and `asks` is false.
    """
    tiling = Tiling(DAY) if given["window"] is None else tiled(given["window"])
    known = Known(tiling.usual, minimum_batch, {})
    if asks and None in given.values():
        note("Enter takes the answer in [brackets]; --yes takes all of them.")
    for name, one in prompts(directory, tiling, tiled, valued).items():
        text = given[name]
        if text is None:
            text = one.default(known)
            if asks:
                for line in one.before(known):
                    note(fill(line, _COLUMNS))
                text = prompt(one.text, one.option, partial(_check, one), text)
            elif text is None:
                raise UsageError(f"{name} is missing and has no default, and init cannot ask here: give {one.option}")
        known.values[name] = one.read(text)
    id, values, window, epsilon, discovery = (
        known.values[name] for name in ("id", "values", "window", "epsilon", "discovery")
    )
    return Answers(id, values, known.aim, window, epsilon, discovery)


def _why_this_window(known: Known) -> list[str]:
    aim = known.aim
    if aim.window() == known.span:
        return []
    few = f"A day has fewer people than a release ({known.minimum_batch:,}), or than the share needs."
    return [f"{few} {aim.assumption(WEEK)}."]


def _why_this_epsilon(known: Known) -> list[str]:
    aim, window = known.aim, known.values["window"].usual
    return [f"What {aim.people_in(window):,} people show, by epsilon:", *aim.offers(window)]


def _check(one: Prompt, text: str) -> None:
    one.read(text)


def _proposed(directory: Path) -> str | None:
    try:
        return typed.id_of(directory.name)
    except UsageError:
        return None
