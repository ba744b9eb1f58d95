"""hushcount simulate: the errors of a mechanism on the user's own values; with --send, reports of simulated people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from rich.console import RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from typer import Option

from hushcount.clock import MACHINE
from hushcount.errors import UsageError
from pipelines.console import options
from pipelines.console.answer import Answer, note, progress_console
from pipelines.console.tables import Table, by_reason, facts, stamp

if TYPE_CHECKING:
    from hushcount.campaigns.parts import NumberPart
    from hushcount.delivery.publication import Publication
    from pipelines.jobs.simulated_people import Law

_Result = TypeVar("_Result")
_LAW = "law"
_RUNS, _PEOPLE, _SHOWN = 10, 20_000, 10
_MOST_PEOPLE = 10**7


def simulate(
    send: Annotated[bool, Option("--send", help="Send reports of simulated people to a collector.")] = False,
    mechanism: Annotated[str | None, Option(help="Without --send: mechanism; an unknown name lists all.")] = None,
    epsilon: Annotated[float | None, Option(help="Without --send: local budget of one report.")] = None,
    values: Annotated[
        str | None,
        Option(
            help="One value a line, text or .gz; or .csv with item and count. With --send also law: Zipf's law.",
            show_default="law with --send",
        ),
    ] = None,
    dictionary: Annotated[
        Path | None, Option(help="Without --send: known items, one a line.", show_default="those that occur")
    ] = None,
    number: options.Number = None,
    bins: options.Bins = None,
    unit: options.Unit = None,
    mean: options.Mean = False,
    count: options.Count = None,
    runs: Annotated[
        int | None, Option(help="Without --send: collections.", min=1, max=1_000_000, show_default=str(_RUNS))
    ] = None,
    seed: Annotated[
        int | None, Option(help="Seed, to repeat the values or the simulation.", min=0, max=options.MOST_SEED)
    ] = None,
    set_: options.Settings = None,
    site: Annotated[str | None, Option(help="With --send: address of the collector.")] = None,
    policy: Annotated[Path | None, Option(help="With --send: policy file, as an app has it.")] = None,
    people: Annotated[
        int | None,
        options.whole("With --send: number of people, as 2e4.", show_default=f"{_PEOPLE:,}"),
    ] = None,
    out: Annotated[
        Path | None, Option(help="With --send: true counts to write, .csv; or .tsv with each person's value.")
    ] = None,
    plain_http: Annotated[bool, Option("--plain-http", help="With --send: permit http:// to another machine.")] = False,
) -> Answer:
    """Use it before you collect, to see a mechanism's errors on your own values; or with --send, to try a deployment.

    --send is for try-outs and load tests: it makes one real report of each of many simulated people, and prints the
    true counts, to compare with ask top. It keeps no budget and no cap, so each real person needs a Sender. Without
    --values, values follow Zipf's law over the dictionary, and numbers are edges of bins; a tenth of the people have
    unlisted values if the campaign looks for them.

    With --number or --count, and without --send, it shows the mean or quantiles of your numbers beside the truth.

    Example: hushcount simulate --mechanism ais --epsilon 1 --values words.txt --runs 100

    Example: hushcount simulate --send --site http://127.0.0.1:8080 --policy policy.json --people 20000
    """
    from pipelines.jobs.number_bins import MEAN, number_part

    part = number_part(number, bins, unit, count, mean)
    of_runs = {
        "--mechanism": mechanism, "--epsilon": epsilon, "--dictionary": dictionary, "--number": part, "--runs": runs,
        "--set": set_,
    }  # fmt: skip
    of_send = {"--site": site, "--policy": policy, "--people": people, "--out": out, "--plain-http": plain_http or None}
    if send:
        _refuse(of_runs, "with")
        if site is None or policy is None:
            raise _missing({"--site": site, "--policy": policy}, "with")
        chosen = None if values in (None, _LAW) else Path(str(values))
        return _sent(site, policy, chosen, _PEOPLE if people is None else people, seed, out, plain_http)
    _refuse(of_send, "without")
    mechanism = MEAN if mean and mechanism is None else mechanism
    if mechanism is None or epsilon is None or values is None:
        raise _missing({"--mechanism": mechanism, "--epsilon": epsilon, "--values": values}, "without")
    if part is not None and dictionary is not None:
        raise UsageError("numbers have bins in place of a dictionary: leave --dictionary out")
    asked = _Asked(mechanism, epsilon, Path(values), _RUNS if runs is None else runs, seed, set_)
    return _of_values(asked, dictionary) if part is None else _of_numbers(asked, part)


@dataclass(frozen=True)
class _Asked:
    """What every simulation takes, as the options say it."""

    mechanism: str
    epsilon: float
    values: Path
    runs: int
    seed: int | None
    settings: list[str] | None

    def run(self, simulated: Callable[..., _Result], **more: object) -> _Result:
        """Return what a simulation returns, with its progress shown."""
        settings, objective = options.parse_settings(self.settings)
        with Progress(*_columns(), console=progress_console(), transient=True) as shown:
            return simulated(
                self.mechanism,
                self.epsilon,
                self.values,
                runs=self.runs,
                seed=self.seed,
                settings=settings,
                objective=objective,
                track=partial(shown.track, description="simulate"),
                **more,
            )


def _of_values(asked: _Asked, dictionary: Path | None) -> Answer:
    from pipelines.jobs.simulate import simulate_values

    result = asked.run(simulate_values, dictionary=dictionary)
    if result.other:
        note(f"{result.other:,} values are not in the dictionary and count as 'other'")
    ratios = (
        "  l2 ratios: the measured l2 over its lower bound, and over the l2 that theory predicts; a ratio below 1 is "
        f"the chance of {result.runs:,} runs, and more --runs bring the second ratio closer to 1"
    )
    return Answer(result.as_dict(), [facts(f"{asked.mechanism}, {result.runs} runs", result.as_dict()), ratios])


def _of_numbers(asked: _Asked, part: NumberPart) -> Answer:
    from pipelines.jobs.simulate_numbers import simulate_numbers

    result = asked.run(simulate_numbers, part=part)
    if result.other:
        where = f"count as {part.edges[0]}" if part.mean else "are left out"
        note(f"{result.other:,} values are no numbers and {where}")
    rows = [
        (one.question, *map(_span, (one.truth, one.estimate, one.interval)), f"{one.held:.0%}") for one in result.asked
    ]
    said = f"{result.n:,} clients, {asked.mechanism}, epsilon {asked.epsilon:g}, {result.runs:,} runs"
    unit = f", {part.unit}" if part.unit else ""
    heads = ("asked", "truth", "estimate", "95 % interval", "held")
    held = (
        "  estimate and interval: of the first run; held: runs with an interval that holds the truth. An interval of "
        "95 % of a mean holds it in 95 of 100 runs, and one of a quantile more often, because it ends at edges"
    )
    return Answer(result.as_dict(), [Table(f"{said}{unit}", heads, rows), held])


def _span(ends: tuple[float | None, float | None]) -> str:
    """Return a number, or two ends, for people; None is no end."""
    low, high = (None if end is None else f"{end:,.6g}" for end in ends)
    if low is None or high is None:
        return "any" if low == high else f"below {high}" if low is None else f"{low} or more"
    return low if low == high else f"{low} to {high}"


def _missing(needed: Mapping[str, object], how: str) -> UsageError:
    missing = " and ".join(name for name, value in needed.items() if value is None)
    return UsageError(f"{how} --send, simulate needs {missing}: see hushcount simulate --help")


def _refuse(strange: Mapping[str, object], how: str) -> None:
    """Raise UsageError if an option of the other use is given."""
    if given := [name for name, value in strange.items() if value is not None]:
        raise UsageError(f"{given[0]} has no meaning {how} --send: leave it out")


def _sent(
    site: str, policy: Path, values: Path | None, people: int, seed: int | None, out: Path | None, plain: bool
) -> Answer:
    from hushcount.delivery import Site
    from hushcount.formats.whole_files import write_over
    from hushcount.newest import Newest
    from hushcount.policy import Policy
    from pipelines.files.csv_cells import csv_text
    from pipelines.jobs import simulated_people
    from pipelines.jobs.send_simulated import post_all, published

    if not 1 <= people <= _MOST_PEOPLE:
        raise UsageError(f"people is {people:,}, must be from 1 to {_MOST_PEOPLE:,}")
    if out is not None and out.suffix not in (".csv", ".tsv"):
        raise UsageError(f"out is {out}, must end with .csv (true counts) or .tsv (each person's value)")
    if out is not None and not out.parent.is_dir():
        raise UsageError(f"out is {out}, but {out.parent} is not a directory: make it first")
    place = Site(site, plain=plain)
    publication = published(place, Policy.read(policy, Newest()))
    campaign = publication.campaign
    law = _law(values, publication)
    drawn = law.draw(people, seed)
    with Progress(*_columns(), console=progress_console(), transient=True) as bars:
        posted = post_all(place, publication, law.values, drawn, partial(bars.track, description="send"))
    counted = drawn[posted.accepted]
    cells = simulated_people.counted(law.values, counted)
    truth = simulated_people.of_values(campaign, cells)
    if out is not None:
        lines = (f"person-{number}\t{law.values[index]}\n" for number, index in enumerate(counted, start=1))
        table = csv_text(*simulated_people.table_of(campaign, cells))
        write_over(out, "".join(lines) if out.suffix == ".tsv" else table, 0o644)
    listed = publication.dictionary
    if campaign.number is None:
        rows = [{"item": value, "count": count, "listed": listed is None or value in listed} for value, count in truth]
    else:
        numbers = simulated_people.of_numbers(campaign.number, truth)
        rows = [{"item": name, "count": count, "listed": name != "other"} for name, count in numbers]
    data: dict[str, Any] = {
        "campaign": campaign.id,
        "epoch": campaign.epoch,
        "law": law.name,
        "people": people,
        "accepted": len(posted.accepted),
        "sent": {stream: posted.sent[stream] for stream in campaign.streams},
        "given_up": dict(posted.given_up),
        "from": stamp(posted.began[0]),
        "to": stamp(MACHINE.now()),
        "truth": rows,
        "question": "top" if campaign.number is None else campaign.number.question,
    }
    lost = posted.given_up.total()
    failure = f"{lost:,} reports were given up: {by_reason(posted.given_up)}" if lost else ""
    return Answer(data, _shown(data), failure)


def _law(values: Path | None, publication: Publication) -> Law:
    """Return the law of a file; or without one a law of items or numbers, which addresses and strata do not have."""
    from pipelines.jobs import simulated_people

    campaign = publication.campaign
    if values is not None:
        return simulated_people.as_in(values, campaign.axis_names)
    if campaign.url or campaign.axes:
        what = "addresses" if campaign.url else "values with coordinates"
        tabs = ", with tabs between a value and its coordinates" if campaign.axes else ""
        raise UsageError(f"clients of campaign {campaign.id} report {what}: give --values FILE, one a line{tabs}")
    if campaign.number is not None:
        return simulated_people.of_edges(campaign.number)
    return simulated_people.zipf(publication.dictionary, unlisted=campaign.discovery is not None)


def _shown(data: Mapping[str, Any]) -> Iterator[RenderableType]:
    sent = ", ".join(f"{number:,} {stream}" for stream, number in data["sent"].items())
    yield facts(
        f"campaign {data['campaign']}, epoch {data['epoch']}",
        {
            "people": f"{data['people']:,}, simulated",
            "values": data["law"],
            "sent": f"{sent}, from {data['from']} to {data['to']}",
        },
    )
    yield ""
    rows = [(row["item"], f"{row['count']:,}", "" if row["listed"] else "not listed") for row in data["truth"]]
    yield Table("true counts", ("value", "people", ""), rows[:_SHOWN])
    if len(rows) > _SHOWN:
        yield f"and {len(rows) - _SHOWN:,} more values: --json and --out have all"
    yield f"Compare with hushcount ask {data['question']} when the window has ended."


def _columns() -> tuple[Any, ...]:
    return TextColumn("{task.description:<11}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
