"""The six prompts of `hushcount init`: each has an option and a check of the answer, and most have a default."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError
from typer import BadParameter

from hushcount.campaigns.dictionary import Dictionary, read_dictionary
from hushcount.campaigns.parts import Identifier
from hushcount.clock import MACHINE
from hushcount.collection.windows import duration, window_at
from hushcount.errors import UsageError
from hushcount.formats.models import explain
from hushcount.maths.probability import require_epsilon
from pipelines.console.options import number_of_reports
from pipelines.console.prompts import prompt, repeated

Name = Literal["id", "values", "clients", "epsilon", "discovery", "window"]
OPEN = "open"
"""The answer that means that no file lists the values."""
NONE = "no"
"""The answer that means that the campaign has no discovery."""


@dataclass(frozen=True)
class Answers:
    """The answers to the six prompts.

    Attributes:
        id: id of the campaign.
        dictionary: file of the listed values; None for an open domain.
        known: the listed values; None for an open domain.
        clients: the least number of clients that report in a window.
        epsilon: local epsilon of one report.
        discovery: epsilon of discovery; None: no discovery.
        window: length of a window.
    """

    id: str
    dictionary: Path | None
    known: Dictionary | None
    clients: int
    epsilon: float
    discovery: float | None
    window: timedelta

    @property
    def delta(self) -> float:
        """Delta of the shuffled guarantee and of discovery: at most a hundredth of 1 / clients."""
        return min(1e-8, 0.01 / self.clients)


@dataclass(frozen=True)
class Prompt:
    """One prompt.

    Attributes:
        text: the text of the prompt, which fits in one line of a narrow terminal.
        option: the option that answers the prompt on the command line.
        read: turns the text of an answer and the earlier values into a value; UsageError says why a text is invalid.
        default: returns the default answer, given the earlier values; None: the prompt has no default.
    """

    text: str
    option: str
    read: Callable[[str, Mapping[Name, Any]], Any]
    default: Callable[[Mapping[Name, Any]], str | None]


def prompts(directory: Path, minimum_batch: int) -> dict[Name, Prompt]:
    """Return the prompts in the order in which they are asked; the directory's name is the default of the id."""
    return {
        "id": Prompt(
            "What is the campaign called, in files and commands?", "--id", _id, lambda _: _proposed(directory)
        ),
        "values": Prompt(
            f"Which file lists the values that you expect, one a line? ('{OPEN}': any text)",
            "--dictionary FILE, or --open-domain for any text",
            _values,
            lambda _: None,
        ),
        "clients": Prompt(
            "How many clients report in a window, at least? (as 20000)",
            "--clients",
            partial(_clients, minimum_batch),
            lambda _: f"{max(10_000, minimum_batch)}",
        ),
        "epsilon": Prompt(
            "Epsilon of a report? (lower: more privacy; higher: smaller errors)",
            "--epsilon",
            _epsilon,
            lambda _: "2",
        ),
        "discovery": Prompt(
            f"Epsilon for finding unlisted values? (as 1; '{NONE}': find none)",
            "--discovery-epsilon, or --no-discovery",
            _discovery,
            lambda known: "1" if known["values"] is None else NONE,
        ),
        "window": Prompt(
            "How long is a window? (as 1h; 7d begins on Thursdays)",
            "--window",
            _window,
            lambda _: "1d",
        ),
    }


def answers(directory: Path, minimum_batch: int, given: Mapping[Name, str | None], *, asks: bool) -> Answers:
    """Return the answers: an option's value if it is given, else if `asks` a person's answer, else the default.

    Raises:
        UsageError: an answer is invalid; or a prompt has neither an option's value nor a default, and `asks` is false.
    """
    known: dict[Name, Any] = {}
    for name, one in prompts(directory, minimum_batch).items():
        text = given[name]
        if text is None:
            text = one.default(known)
            if asks:
                text = prompt(one.text, one.option, partial(_check, one, known), text)
            elif text is None:
                raise UsageError(f"{name} is missing and has no default, and init cannot ask here: give {one.option}")
        known[name] = one.read(text, known)
    path, listed = known["values"] or (None, None)
    return Answers(known["id"], path, listed, known["clients"], known["epsilon"], known["discovery"], known["window"])


def _check(one: Prompt, known: Mapping[Name, Any], text: str) -> None:
    one.read(text, known)


def _proposed(directory: Path) -> str | None:
    try:
        return _id(directory.name, {})
    except UsageError:
        return None


def _id(text: str, _: Mapping[Name, Any]) -> str:
    try:
        return TypeAdapter[str](Identifier).validate_python(text)
    except ValidationError as error:
        raise UsageError(explain(error, "id")) from None


def _values(text: str, _: Mapping[Name, Any]) -> tuple[Path, Dictionary] | None:
    if text == OPEN:
        return None
    if not text.isprintable():
        raise UsageError(f"dictionary is {repeated(text)}, must be the path of a file, in printable characters")
    try:
        # Expand ~ in a path that is typed at the prompt; on a command line, the shell has expanded it.
        path = Path(text).expanduser()
    except RuntimeError:
        path = Path(text)
    return path, read_dictionary(path)


def _clients(minimum_batch: int, text: str, _: Mapping[Name, Any]) -> int:
    try:
        number = number_of_reports(text)
    except BadParameter:
        number = -1
    if number < minimum_batch:
        raise UsageError(
            f"clients is {repeated(text)}, must be a whole number of at least {minimum_batch}, the minimum batch: "
            f"fewer reports are never released, so choose a longer window"
        )
    return number


def _epsilon(text: str, _: Mapping[Name, Any]) -> float:
    return _number("epsilon", text, "a number")


def _discovery(text: str, _: Mapping[Name, Any]) -> float | None:
    return None if text.lower() == NONE else _number("discovery-epsilon", text, f"'{NONE}' or a number")


def _number(name: str, text: str, form: str) -> float:
    try:
        number = float(text)
        require_epsilon(number)
    except ValueError:
        raise UsageError(f"{name} is {repeated(text)}, must be {form} from 0.0001 to 40") from None
    return number


def _window(text: str, _: Mapping[Name, Any]) -> timedelta:
    try:
        length = duration(text)
        window_at(MACHINE.now(), length)
    except ValueError:
        raise UsageError(
            f"window is {repeated(text)}, must be a whole number and s, m, h or d, up to 366d, as in 1h or 1d"
        ) from None
    return length
