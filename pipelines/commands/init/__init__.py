"""hushcount init: a deployment on one machine, from seven answers."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from hushcount.collection.tilings import Weekday
from hushcount.errors import UsageError
from pipelines.console import options
from pipelines.console.answer import Answer, note
from pipelines.console.prompts import is_person

if TYPE_CHECKING:
    from pipelines.commands.init.wizard import Answers

_HOST = re.compile(r"[A-Za-z0-9.:-]{1,255}")


def init(
    directory: Annotated[Path, Argument(help="Directory to make: it must be missing, or empty.", show_default=False)],
    id: Annotated[
        str | None, Option(help="Question 1: id of the campaign.", show_default="the directory's name")
    ] = None,
    dictionary: Annotated[
        Path | None,
        Option(help="Question 2: file of the values that you expect, one a line, or a .csv with the column item."),
    ] = None,
    number: Annotated[
        str | None, Option(help="Question 2: values are numbers in a range, as 0:60000; people report their bins.")
    ] = None,
    bins: Annotated[
        str | None, Option(help="With --number: linear:N or log:N.", show_default=options.USUAL_BINS)
    ] = None,
    unit: options.Unit = None,
    open_domain: Annotated[bool, Option("--open-domain", help="Question 2: any text is a value.")] = False,
    clients: Annotated[
        int | None,
        options.whole("Question 3: people who report in a window, at least, as 1e5.", show_default="10000"),
    ] = None,
    want_share: Annotated[
        str | None,
        Option(help="Question 4: smallest share of these people that matters, as 1% or 0.01.", show_default="5%"),
    ] = None,
    window: Annotated[
        str | None,
        Option(
            help="Question 5: length of a window, as 1h, or day, week or month: its reports are counted together.",
            show_default="1d, or 7d if a day has too few people",
        ),
    ] = None,
    zone: Annotated[
        str | None,
        Option(help="Time zone of the windows day, week and month, as Europe/Berlin.", show_default="UTC"),
    ] = None,
    starts: Annotated[
        Weekday | None, Option(help="First day of the window week, as sunday.", show_default="monday")
    ] = None,
    epsilon: Annotated[
        float | None,
        Option(
            help="Question 6: local budget of one report; lower means more privacy.",
            show_default="the least of 0.5 to 4 that shows --want-share",
        ),
    ] = None,
    discovery_epsilon: Annotated[
        float | None,
        Option(
            help="Question 7: epsilon for finding unlisted values, with noisy counts.",
            show_default="none; 1 with --open-domain",
        ),
    ] = None,
    no_discovery: Annotated[
        bool, Option("--no-discovery", help="Question 7: do not look for unlisted values.")
    ] = False,
    yes: Annotated[bool, Option("--yes", help="Ask nothing: take the default of each missing option.")] = False,
    noise: Annotated[bool, Option("--noise", hidden=True)] = False,
    min_batch: Annotated[int, Option(help="Fewest reports in a release.", min=1, max=options.MOST_REPORTS)] = 1000,
    host: Annotated[str, Option(help="Address that the collector listens on.")] = "127.0.0.1",
    port: Annotated[int, Option(help="Port that the collector listens on.", min=1, max=65535)] = 8080,
    user: Annotated[
        str | None, Option(help="User that the services run as; root may name another.", show_default="you")
    ] = None,
) -> Answer:
    """Use it to begin: it asks seven questions, says what you will see, and writes keys, campaign, policy and services.

    It asks only at a terminal, and only for missing options; --yes asks nothing. One operator then holds all keys:
    deploy/README.md shows how to share them out.

    Example: hushcount init usage --dictionary settings.txt --clients 20000 --window day --zone Europe/Berlin --yes
    """
    # Imported only here, because these imports are slow, and --help must be fast.
    from hushcount.privacy.queries import epsilon_notes
    from pipelines.commands.init import typed, wizard
    from pipelines.commands.init.next_steps import NextSteps
    from pipelines.commands.init.shown import Made
    from pipelines.commands.init.units import service_user
    from pipelines.commands.init.write import Choice, Place, require_new, write
    from pipelines.jobs.number_bins import number_part
    from pipelines.jobs.number_plans import PlannedNumbers

    if noise:
        raise UsageError(
            "init makes all keys for one operator, from whom noise of the mixes protects nobody: leave --noise out; "
            "hushcount campaign new --noise takes the public key of another operator's auxiliary server"
        )
    target = directory.resolve()
    require_new(target)
    if not _HOST.fullmatch(host):
        raise UsageError(f"host is {host!r}, must be a name or an address of this machine")
    place = Place(target, host, port, service_user(user))
    if (dictionary is not None) + (number is not None) + open_domain > 1:
        raise UsageError("give one of --number, --dictionary or --open-domain")
    if number is not None:
        # An answer to question 2 that is no range is the name of a file.
        number_part(number, bins, unit, None, mean=False)
    if discovery_epsilon is not None and no_discovery:
        raise UsageError("give --discovery-epsilon or --no-discovery, not both")
    # Make the path absolute, because the answer "open" means that there is no dictionary, even if a file has this name.
    listed = None if dictionary is None else str(dictionary.absolute())
    given: dict[wizard.Name, str | None] = {
        "id": id,
        "values": typed.OPEN if open_domain else number or listed,
        "clients": None if clients is None else str(clients),
        "share": want_share,
        "window": window,
        "epsilon": None if epsilon is None else repr(epsilon),
        "discovery": typed.NONE if no_discovery else None if discovery_epsilon is None else repr(discovery_epsilon),
    }
    tiled = partial(typed.tiling_of, zone=zone, starts=starts)
    valued = partial(typed.values_of, bins=bins, unit=unit)
    answers = wizard.answers(target, min_batch, given, tiled, valued, asks=not yes and is_person())
    best = answers.aim.best(answers.epsilon, answers.window)
    sight = answers.aim.sight(answers.epsilon, answers.window)
    for sentence in (*epsilon_notes(answers.epsilon), *answers.notes):
        note(f"warning: {sentence}")
    value = _test_value(answers)
    part = answers.values.number
    numbers = None if part is None else PlannedNumbers.of(part, best, answers.epsilon, answers.clients)
    campaign, budget = write(place, answers, Choice(best.mechanism, best.parameters, min_batch), value)
    made = Made(NextSteps(place, answers, str(value)), best, sight, campaign, budget, numbers)
    return Answer(made.data(), made.shown())


def _test_value(answers: Answers) -> str | float:
    """Return a short value for a test report; it does not begin with -, because commands would read it as an option."""
    if answers.values.number is not None:
        return abs(answers.values.number.bins.values[-1])
    items = () if answers.values.known is None else answers.values.known.items
    return min((item for item in items if item[0] != "-"), key=lambda item: (len(item), item), default="test")
