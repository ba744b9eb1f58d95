"""hushcount init: a deployment on one machine, from six answers."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text
from typer import Argument, Option

from hushcount.clock import MACHINE
from hushcount.collection.windows import duration_text, tiling, window_at
from hushcount.errors import UsageError
from hushcount.maths.figures import odds_of, rounded_up, users
from pipelines.console import options
from pipelines.console.answer import Answer
from pipelines.console.guarantees import guarantee
from pipelines.console.prompts import is_person
from pipelines.console.tables import facts

if TYPE_CHECKING:
    from hushcount.campaigns.campaign import Campaign
    from hushcount.planning.planner import Candidate
    from pipelines.commands.init.wizard import Answers
    from pipelines.commands.init.write import Place

_HOST = re.compile(r"[A-Za-z0-9.:-]{1,255}")


def init(
    directory: Annotated[Path, Argument(help="Directory to make: it must be missing, or empty.", show_default=False)],
    id: Annotated[str | None, Option(help="Id of the campaign.", show_default="the directory's name")] = None,
    dictionary: Annotated[Path | None, Option(help="File of the values that you expect, one a line.")] = None,
    open_domain: Annotated[bool, Option("--open-domain", help="Any text is a value.")] = False,
    clients: Annotated[
        int | None,
        Option(
            help="Least number of clients in a window, as 1e5; the mechanism is planned for it.",
            parser=options.number_of_reports,
            metavar="INTEGER",
            show_default="10000",
        ),
    ] = None,
    epsilon: Annotated[
        float | None, Option(help="Local budget of one report; lower means more privacy.", show_default="2")
    ] = None,
    discovery_epsilon: Annotated[
        float | None,
        Option(help="Epsilon for finding unlisted values.", show_default="none; 1 with --open-domain"),
    ] = None,
    no_discovery: Annotated[bool, Option("--no-discovery", help="Do not look for unlisted values.")] = False,
    window: Annotated[
        str | None, Option(help="Length of a window: its reports are counted together, as 1h.", show_default="1d")
    ] = None,
    yes: Annotated[bool, Option("--yes", help="Ask nothing: take the default of each missing option.")] = False,
    min_batch: Annotated[int, Option(help="Fewest reports in a release.", min=1, max=options.MOST_REPORTS)] = 1000,
    host: Annotated[str, Option(help="Address that the collector listens on.")] = "127.0.0.1",
    port: Annotated[int, Option(help="Port that the collector listens on.", min=1, max=65535)] = 8080,
    user: Annotated[
        str | None, Option(help="User that the services run as; root may name another.", show_default="you")
    ] = None,
) -> Answer:
    """Use it to begin: it asks at most six questions, plans, and writes keys, campaign, policy, ledger and services.

    It asks only at a terminal, and only for missing options. One operator then holds all keys: deploy/README.md shows
    how to share them out.

    Example: hushcount init usage --dictionary settings.txt --clients 20000 --epsilon 2 --window 1d
    """
    # Imported only here, because these imports are slow, and --help must be fast.
    from pipelines.commands.init import planned, wizard
    from pipelines.commands.init.units import service_user
    from pipelines.commands.init.write import Choice, Place, require_new, write

    target = directory.resolve()
    require_new(target)
    if not _HOST.fullmatch(host):
        raise UsageError(f"host is {host!r}, must be a name or an address of this machine")
    place = Place(target, host, port, service_user(user))
    if dictionary is not None and open_domain:
        raise UsageError("give --dictionary or --open-domain, not both")
    if discovery_epsilon is not None and no_discovery:
        raise UsageError("give --discovery-epsilon or --no-discovery, not both")
    # Make the path absolute, because the answer "open" means that there is no dictionary, even if a file has this name.
    listed = None if dictionary is None else str(dictionary.absolute())
    given: dict[wizard.Name, str | None] = {
        "id": id,
        "values": wizard.OPEN if open_domain else listed,
        "clients": None if clients is None else str(clients),
        "epsilon": None if epsilon is None else repr(epsilon),
        "discovery": wizard.NONE if no_discovery else None if discovery_epsilon is None else repr(discovery_epsilon),
        "window": window,
    }
    answers = wizard.answers(target, min_batch, given, asks=not yes and is_person())
    best = planned.mechanism_for(answers)
    value = _test_value(answers)
    campaign, budget = write(place, answers, Choice(best.mechanism, best.parameters, min_batch), value)
    data: dict[str, Any] = {
        "directory": str(target),
        "campaign": campaign.id,
        "epoch": campaign.epoch,
        "fingerprint": campaign.fingerprint.hex(),
        "mechanism": best.mechanism,
        "standard_error": best.standard_error_users,
        "clients": answers.clients,
        "epsilon": answers.epsilon,
        "minimum_batch": min_batch,
        "window": answers.window.total_seconds(),
        "guarantee": planned.shuffled_guarantee(campaign, answers.clients),
        "discovery": planned.discovery_guarantee(campaign),
        "trust": _trust(campaign),
        "ledger": asdict(budget),
        "commands": _commands(place, answers, value),
        "user": place.user.name,
        "services": _services(place),
    }
    return Answer(data, _shown(answers, best, data))


def _test_value(answers: Answers) -> str:
    """Return a short value for a test report; it does not begin with -, because commands would read it as an option."""
    items = () if answers.known is None else answers.known.items
    return min((item for item in items if item[0] != "-"), key=lambda item: (len(item), item), default="test")


def _trust(campaign: Campaign) -> list[str]:
    """Return sentences on which guarantee holds against which party, and how to promise more."""
    odds = odds_of(campaign.require_frequency().epsilon)
    sentences = [
        "You hold all keys, so against you only the local guarantee holds: a report changes the odds that a person "
        f"sent one value rather than another by {odds}, whoever sees it.",
        "The shuffled epsilon holds against people who see only results, as long as you keep to the rules.",
    ]
    if campaign.discovery is not None:
        sentences.append("You can read every value that is sent for discovery: it is sealed, but not randomised.")
    return [*sentences, "To promise more, let people who share no keys run the parties: deploy/README.md."]


def _commands(place: Place, answers: Answers, value: str) -> list[str]:
    """Return four commands: take reports, count the reports, send one report, and show what became of this report."""
    config = shlex.quote(str(place.directory / "deployment.toml"))
    policy = shlex.quote(str(place.directory / "policy.json"))
    # Run each command as the services' user, so that this user owns all files.
    own = "" if place.user.is_caller else f"sudo -u {place.user.name} "
    plain = "" if place.is_near else " --plain-http"
    send = f"hushcount send --site {place.site}{plain} --policy {policy}"
    return [
        f"{own}hushcount collect --config {config}",
        f"{own}hushcount run --config {config} --watch",
        f"{own}{send} --window {duration_text(answers.window)} {shlex.quote(value)}",
        f"{own}hushcount status --config {config}",
    ]


def _services(place: Place) -> str:
    """Return the command that starts the collector and the schedule of runs, now and at each boot."""
    units = shlex.quote(str(place.directory / "systemd"))
    return (
        f"sudo cp {units}/hushcount-* /etc/systemd/system/ && "
        "sudo systemctl enable --now hushcount-collect.service hushcount-run.timer"
    )


def _shown(answers: Answers, best: Candidate, data: dict[str, Any]) -> Iterator[RenderableType]:
    from pipelines.commands.init.planned import Spans

    spans, ledger, found = Spans.of(answers.window), data["ledger"], data["discovery"]
    begins = tiling(answers.window, window_at(MACHINE.now(), answers.window))
    listed = (
        "any text"
        if answers.known is None
        else f"{len(answers.known.items):,} listed, and 'other': {answers.known.sizes}"
    )
    lines = {
        "campaign": f"{answers.id}, epoch 1, signed and published: collectors accept reports from now on",
        "values": listed,
        "mechanism": f"{best.mechanism}, the least error for {answers.clients:,} clients in a window",
        "error": f"{users(best.standard_error_users)} users of {answers.clients:,}, the standard error of a count",
        "window": f"{duration_text(spans.window)}; late reports count for {duration_text(spans.grace)} more; reports "
        f"are kept for {duration_text(spans.kept)}",
        **({"begins": begins} if begins else {}),
        "discovery": "none"
        if found is None
        else f"epsilon {rounded_up(found['epsilon'])}: a value is found when about "
        f"{found['clients_for_even_chance']:,} clients sent it",
        "ledger": f"epsilon {rounded_up(ledger['epsilon'])}, delta {rounded_up(ledger['delta'])} in "
        f"{ledger['renew_days']} days: enough for every window",
    }
    yield facts(f"deployment {data['directory']}", lines)
    yield ""
    yield guarantee("guarantee for each client, as hushcount privacy shows it", data["guarantee"])
    yield ""
    # Padding wraps this text between words; the commands below are plain strings, because they must not wrap.
    yield Padding(Text(" ".join(data["trust"])), 0)
    yield ""
    collect, run, send, status = data["commands"]
    yield "Take reports, and count each window after its end, in two terminals:"
    yield from (f"  {command}" for command in (collect, run))
    yield "or as services:"
    yield f"  {data['services']}"
    if data["user"] == "root":
        yield Padding(Text("(The services run as root. Give --user NAME for a user with fewer rights.)"), (0, 0, 0, 2))
    yield "Send one report to try the deployment, and see what becomes of this report:"
    yield from (f"  {command}" for command in (send, status))
