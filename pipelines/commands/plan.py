"""hushcount plan: choose the mechanism before collecting, by exact errors, under one or two limits of privacy."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text
from typer import Option

from hushcount.campaigns.axes import AxesPart
from hushcount.campaigns.dictionary import MOST_ITEMS
from hushcount.campaigns.parts import NumberPart
from hushcount.errors import UsageError
from hushcount.maths.figures import rounded_up
from hushcount.maths.probability import LARGEST_EPSILON
from hushcount.oracles.catalogue import CATALOGUE, MEANS, frequency_oracle
from hushcount.oracles.sight import FALSE_DETECTIONS
from hushcount.planning import planner
from hushcount.planning.planner import Candidate, Plan, Task
from hushcount.planning.samples import least_sample
from hushcount.planning.sealed import WINDOWS, WINDOWS_DELTA, Sealed
from hushcount.planning.shuffled import Limits, ShuffledPlan, shuffled_plan
from hushcount.policy import LEAST_SHARE
from hushcount.privacy.queries import delta_notes, epsilon_notes
from pipelines.console import options
from pipelines.console.answer import Answer, note
from pipelines.console.tables import Table
from pipelines.files.item_files import read_listed, table_note
from pipelines.jobs.axis_parts import axes_part
from pipelines.jobs.number_bins import MEAN, number_part
from pipelines.jobs.number_plans import PlannedNumbers, mean_error, plan_mean
from pipelines.jobs.public_plans import PublicPrice, smallest_stratum

_DELTA = 1e-8
_FALSE_POSITIVES_OF_ONE = 0.001
"""Probability of a false detection of one item in an open domain."""


def plan(
    epsilon: Annotated[
        float | None, Option(help="Local budget of one report; with --shuffled-epsilon, its upper limit.")
    ] = None,
    reports: Annotated[
        int | None,
        options.whole("Expected number of reports, as 1e6; with --shuffled-epsilon, the fewest."),
    ] = None,
    shuffled_epsilon: Annotated[
        float | None, Option(help="Budget of one report after shuffling; plans its local epsilon too.")
    ] = None,
    delta: Annotated[
        float | None, Option(help="Delta of --shuffled-epsilon, far below 1/reports.", show_default="1e-8")
    ] = None,
    dictionary_size: Annotated[int | None, Option(help="Number of items, including 'other'.")] = None,
    dictionary: Annotated[
        Path | None, Option(help="File of known items, one a line, or a .csv with the column item.")
    ] = None,
    open_domain: Annotated[bool, Option("--open-domain", help="Any string is an item.")] = False,
    number: options.Number = None,
    bins: options.Bins = None,
    unit: options.Unit = None,
    mean: options.Mean = False,
    count: options.Count = None,
    by: options.Axes = None,
    public_by: options.PublicAxes = None,
    min_batch: Annotated[
        int | None,
        Option(min=1, max=10**12, help="With --public-by: fewest reports of a shown stratum.", show_default="1000"),
    ] = None,
    objective: Annotated[
        str | None, Option(help="Error to minimise: l2 (default): of all items; mse: the worst; target: of one share.")
    ] = None,
    target_share: Annotated[float | None, Option(help="Share of the item with --objective target.")] = None,
    want_error: Annotated[
        float | None,
        Option(
            help="Standard error in users: computes the least epsilon or the most reports; with --mean in the unit of "
            "the numbers: the least epsilon or the fewest reports.",
            min=1e-6,
            max=1e12,
        ),
    ] = None,
    want_share: Annotated[float | None, Option(help="Share to detect: computes reports or epsilon.")] = None,
    power: Annotated[float, Option(help="Probability to detect the share of --want-share.")] = 0.95,
    clients: Annotated[
        int | None,
        options.whole("All clients, as 1e8: names the sample that sends the reports of --want-share."),
    ] = None,
    mechanism: Annotated[list[str] | None, Option(help="Compare only this mechanism; may be repeated.")] = None,
    max_report_bytes: Annotated[
        int | None, Option(help="Most bytes of a report before sealing.", min=1, max=1 << 20)
    ] = None,
    max_tally_mib: Annotated[float | None, Option(help="Largest tally, in MiB.", min=0.0, max=2.0**20)] = None,
    out: Annotated[Path | None, Option(help="Campaign file to write with the best mechanism.")] = None,
    id: Annotated[str | None, Option(help="Id of the campaign, with --out.")] = None,
    keys: Annotated[list[Path] | None, Option(help="Directory with public.json, with --out; may be repeated.")] = None,
) -> Answer:
    """Use it before campaign new. Give --epsilon and --reports, or one of them with --want-error or --want-share.

    For numbers it says the error of a mean, or how narrow the intervals of quantiles are. The mechanism chosen for
    the counts of bins also has, within 2 %, the least error of quantiles.

    With --shuffled-epsilon, --delta and --reports it finds the largest local epsilon that shuffling reduces to that.

    Example: hushcount plan --epsilon 1 --dictionary-size 26000 --reports 100000
    """
    chosen = options.objective_of(objective, target_share)
    if chosen.name == "target" and target_share is None:
        raise UsageError("objective is target: give --target-share too")
    axes, part = axes_part(by, public_by), number_part(number, bins, unit, count, mean)
    of_items = {
        "--by": by, "--mechanism": mechanism, "--objective": objective, "--target-share": target_share,
        "--want-share": want_share, "--shuffled-epsilon": shuffled_epsilon,
        "--public-by": public_by,
    }  # fmt: skip
    smallest = smallest_stratum(public_by, min_batch, reports)
    names = _mean_alone(of_items) if mean else _names(mechanism, axes, part)
    domain = _domain(dictionary_size, dictionary, open_domain, axes, part)
    if clients is not None and (want_share is None or epsilon is None or out is not None):
        raise UsageError(
            "give --clients with --want-share and --epsilon, and without --out: hushcount campaign new makes the file "
            "of a campaign with a sample"
        )
    detection: dict[str, float] = {}
    both: ShuffledPlan | None = None
    try:
        task = Task(domain, chosen, max_report_bytes, max_tally_mib, names)
        if shuffled_epsilon is not None:
            if want_error is not None or want_share is not None or reports is None:
                raise UsageError("give --shuffled-epsilon with --reports, and without --want-error and --want-share")
            # With public axes a report hides among those of its stratum alone.
            both = _shuffled(task, shuffled_epsilon, delta, epsilon, smallest or reports)
            result = both.plan
        elif delta is not None:
            raise UsageError("give --delta with --shuffled-epsilon only: a local guarantee has no delta")
        elif want_share is None:
            result = _solve(task, epsilon, reports, want_error, part)
        else:
            if want_error is not None or (epsilon is None) == (reports is None):
                raise UsageError(
                    "give --want-share with --epsilon, to compute reports, or with --reports, to compute epsilon"
                )
            rate = _FALSE_POSITIVES_OF_ONE if domain is None else FALSE_DETECTIONS / domain
            result, reached = planner.to_detect(task, planner.Detection(want_share, power, rate), epsilon, reports)
            detection = {"share": want_share, "power": reached, "false_positive_rate": rate}
        numbers = (
            None
            if part is None or axes is not None
            else PlannedNumbers.of(part, result.chosen, result.epsilon, result.reports)
        )
        public = None if smallest is None else PublicPrice.of(task, result, both, reports or result.reports, smallest)
        sample = None if clients is None else least_sample(clients, result.reports)
        sealed = None if domain is None or mean or public_by else _sealed(result, both, domain)
        if out is not None:
            _write(result, out, id, keys, dictionary, open_domain, both, axes, part, smallest)
    except ValueError as error:
        raise UsageError(str(error)) from None
    for sentence in epsilon_notes(result.epsilon):
        note(f"warning: {sentence}")
    data = {
        "chosen": asdict(result.chosen),
        "reason": result.reason,
        **asdict(result),
        **({"detection": detection} if detection else {}),
        **({} if both is None else {"shuffled": both.data()}),
        **({} if sample is None else {"sample": {"clients": clients, "share": sample, "least_share": LEAST_SHARE}}),
        **({} if numbers is None else {"number": numbers.data()}),
        **({} if axes is None else {"strata": len(axes.strata), "item_error": _item_error(result, axes)}),
        **({} if public is None else {"public": asdict(public)}),
        **({} if sealed is None else {"sealed": sealed.data()}),
    }
    return Answer(
        data,
        [
            *_shown(result, domain, detection, out, both, part),
            *_of_numbers(numbers),
            *_broken_down(result, axes),
            *_openly(public, both is not None),
            *_asking(clients, sample),
            *_without_mechanism(sealed),
        ],
    )


def _mean_alone(of_items: Mapping[str, object]) -> tuple[str, ...]:
    """Return the mechanism of a mean; UsageError: an option is given that has no meaning for a mean."""
    if given := [name for name, value in of_items.items() if value is not None]:
        raise UsageError(f"{given[0]} has no meaning with --mean: leave it out")
    return (MEAN,)


def _of_numbers(numbers: PlannedNumbers | None) -> Iterator[RenderableType]:
    if numbers is not None:
        yield from map(_line, numbers.words())


def _item_error(result: Plan, axes: AxesPart) -> float:
    """Return the standard error of an item, users: that of the sum of its cells, as if they were independent."""
    return result.chosen.standard_error_users * math.sqrt(len(axes.private))


def _openly(public: PublicPrice | None, is_shuffled: bool) -> Iterator[RenderableType]:
    if public is not None:
        yield from map(_line, public.words(is_shuffled=is_shuffled))


def _sealed(result: Plan, both: ShuffledPlan | None, domain: int) -> Sealed:
    """Return what sealed reports cost at the guarantee of a plan; a local epsilon is that of a window then."""
    if both is None:
        return Sealed.of(result.epsilon, _DELTA, domain)
    return Sealed.of(both.limits.shuffled, both.limits.delta, domain)


def _without_mechanism(sealed: Sealed | None) -> Iterator[RenderableType]:
    if sealed is None:
        return
    for name, reason in sealed.left_out.items():
        note(f"  left out: {name}: {reason}")
    if not sealed.ways:
        return
    rows = [
        (
            way.name,
            f"{way.standard_error_users:.1f}",
            f"{way.shown_from:,}",
            f"{way.dummies:,.0f}",
            f"{way.dummy_bytes / 1e6:,.1f}",
            f"{way.seal_seconds:,.1f}",
            rounded_up(way.windows_epsilon),
        )
        for way in sealed.ways
    ]
    heads = ("way", "error", "from", "dummies", "MB", "s", f"{WINDOWS} windows")
    yield Table(
        f"sealed, not randomised: epsilon {sealed.epsilon:g}, delta {sealed.delta:g} for a client in a window",
        heads,
        rows,
        words=("way",),
    )
    yield _line(
        "error: standard error in users of each count, at any number of reports; from: reports of a value that is "
        f"shown half the time; MB: dummies; s: sealing them; {WINDOWS} windows: their epsilon together at a delta of "
        f"{WINDOWS_DELTA:g}"
    )
    yield from map(_line, sealed.words())


def _broken_down(result: Plan, axes: AxesPart | None) -> Iterator[RenderableType]:
    if axes is None or not axes.private.axes:
        return
    each, whole = f"{result.chosen.standard_error_users:,.4g}", f"{_item_error(result, axes):,.4g}"
    yield _line(
        f"broken down by {axes.words}: an item in one stratum has an error of {each} users; an item in all "
        f"{len(axes.private):,} private strata one of about {whole}, because errors of cells add up in squares"
    )


def _names(mechanism: list[str] | None, axes: AxesPart | None, part: NumberPart | None) -> tuple[str, ...]:
    """Return the mechanisms to compare; UsageError: one is unknown, or counts no items."""
    for name in mechanism or ():
        frequency_oracle(name)
        if name in MEANS:
            raise UsageError(f"{name} counts no items: give --number LOW:HIGH --mean to plan for a mean")
    adds = "--by" if axes is not None else None if part is None else "the numbers"
    if adds and (pooled := [name for name in mechanism or () if CATALOGUE[name].seeded]):
        raise UsageError(f"{pooled[0]} adds cells up to a sketch: leave it or {adds} out")
    return tuple(mechanism or (name for name, one in CATALOGUE.items() if not (adds and one.seeded)))


def _asking(clients: int | None, sample: float | None) -> Iterator[RenderableType]:
    if clients is not None and sample is not None:
        yield _line(
            f"if each client that is asked sends one report, {sample:.2%} of {clients:,} clients suffice: hushcount "
            f"campaign new --sample {max(sample, LEAST_SHARE):.2%}; the policy of an app allows {LEAST_SHARE:.0%} or "
            "more"
        )


def _domain(
    size: int | None, dictionary: Path | None, open_domain: bool, axes: AxesPart | None, part: NumberPart | None
) -> int | None:
    if sum((size is not None, dictionary is not None, open_domain, part is not None)) != 1:
        raise UsageError("give one of --number LOW:HIGH, --dictionary-size D, --dictionary FILE and --open-domain")
    if axes is not None and open_domain:
        raise UsageError("--by needs a dictionary: give --dictionary-size D or --dictionary FILE")
    if dictionary is not None:
        known = read_listed(dictionary)
        if said := table_note(dictionary, known):
            note(f"warning: {said}")
        note(f"note: dictionary {dictionary} has {known.sizes}")
        size = len(known.items) + 1
    if part is not None:
        size = len(part.items) + 1
    if axes is None or size is None:
        return size
    if (cells := size * len(axes.strata)) > MOST_ITEMS:
        raise UsageError(
            f"items and axes make {cells:,} cells, must be at most {MOST_ITEMS:,}: list fewer items or coordinates"
        )
    return size * len(axes.private)


def _shuffled(task: Task, shuffled: float, delta: float | None, epsilon: float | None, reports: int) -> ShuffledPlan:
    most = LARGEST_EPSILON if epsilon is None else epsilon
    limits = Limits(shuffled, _DELTA if delta is None else delta, most)
    found = shuffled_plan(task, limits, reports)
    for sentence in delta_notes(limits.delta, reports):
        note(f"note: {sentence}")
    return found


def _solve(
    task: Task, epsilon: float | None, reports: int | None, error: float | None, part: NumberPart | None
) -> Plan:
    if error is None:
        if epsilon is None or reports is None:
            raise UsageError("give --epsilon and --reports, or one of them with --want-error")
        return planner.make_plan(task, epsilon, reports)
    if part is not None and part.mean and (epsilon is None) != (reports is None):
        return plan_mean(part, task, error, epsilon, reports)
    if epsilon is None and reports is not None:
        return planner.least_epsilon(task, reports, error)
    if epsilon is not None and reports is None:
        return planner.most_reports(task, epsilon, error)
    raise UsageError("give --want-error with --reports, to compute epsilon, or with --epsilon, to compute reports")


def _write(
    result: Plan,
    out: Path,
    id: str | None,
    keys: list[Path] | None,
    dictionary: Path | None,
    open_domain: bool,
    both: ShuffledPlan | None,
    axes: AxesPart | None,
    part: NumberPart | None,
    smallest: int | None,
) -> None:
    if id is None or not keys:
        raise UsageError("give --id and --keys with --out: a campaign file holds its name and the public keys")
    if dictionary is None and not open_domain and part is None:
        raise UsageError("give --dictionary FILE or --open-domain with --out: a campaign file fixes the items")
    from keys import directories
    from pipelines.jobs.new_campaign import create_campaign

    best = result.chosen
    create_campaign(
        id,
        directories.read_public(keys),
        out.parent,
        mechanism=best.mechanism,
        epsilon=result.epsilon,
        dictionary=dictionary,
        number=part,
        axes=axes,
        settings=best.parameters,
        shuffle={
            # The shuffled limit holds for `result.reports` or more reports, so releases with fewer must be prevented.
            **({} if both is None else {"minimum_batch": result.reports, "delta": both.limits.delta}),
            **({} if smallest is None else {"minimum_batch": smallest}),
        },
    ).write(out)


def _shown(
    result: Plan,
    domain: int | None,
    detection: dict[str, float],
    out: Path | None,
    both: ShuffledPlan | None,
    part: NumberPart | None,
) -> Iterator[RenderableType]:
    items, unit, scale = "an open domain" if domain is None else f"{domain:,} items", "users", 1.0
    if part is not None and part.mean:
        items, unit = part.words, part.unit or "the unit of the numbers"
        scale = mean_error(part, result.chosen, result.reports) / result.chosen.standard_error_users
    locally = [] if both is None else [f"{one.local_epsilon:.4g}" for one in both.protections]
    rows = [
        [
            Text(cell, "bold" if candidate is result.chosen else "")
            for cell in (*_row(candidate, scale), *locally[at : at + 1])
        ]
        for at, candidate in enumerate(result.candidates)
    ]
    limit = f"epsilon {result.epsilon:g}"
    if both is not None:
        limit = f"shuffled epsilon {both.limits.shuffled:g} at most, delta {both.limits.delta:g}"
    title = f"{result.reports:,} reports, {limit}, {items}"
    heads = ("mechanism", "error", "bias", "bits", "bytes", "sealed", "MiB", "s", *(["local"] if both else []))
    yield Table(title, heads, rows, words=("mechanism",))
    said = "; local: local epsilon" if both else ""
    yield _line(f"error: standard error in {unit}; bias: largest bias by collisions; MiB: tally; s: decoding{said}")
    yield _line(result.reason)
    yield from map(_line, () if both is None else both.words())
    for reason in dict.fromkeys(result.left_out.values()):
        names = ", ".join(name for name, why in result.left_out.items() if why == reason)
        note(f"  left out: {names}: {reason}")
    if detection:
        rate, looked = _FALSE_POSITIVES_OF_ONE, "one item"
        if domain is not None:
            rate, looked = FALSE_DETECTIONS, f"{domain:,} items together (Bonferroni)"
        yield _line(
            f"an item of share {detection['share']:g} is detected with probability {detection['power']:.3f} by "
            f"{result.reports:,} reports at epsilon {result.epsilon:g}; false detections: {rate:g} at most, of {looked}"
        )
    if out is not None:
        floor = "" if both is None else f", with a minimum batch of {result.reports:,}: fewer reports are not released"
        yield f"  campaign file {out}{floor}"


def _line(text: str) -> RenderableType:
    """Return a text that wraps between words, unlike a string."""
    return Padding(Text(text), (0, 0, 0, 2))


def _row(one: Candidate, scale: float) -> tuple[str, ...]:
    parameters = (f"{key}={_short(value)}" for key, value in one.parameters.items())
    return (
        " ".join((one.mechanism, *parameters)),
        f"{scale * one.standard_error_users:,.{1 if scale == 1.0 else 4}{'f' if scale == 1.0 else 'g'}}",
        f"{one.collision_error_users:,.0f}",
        f"{one.report_bits:,.1f}",
        f"{one.report_bytes:,}",
        f"{one.sealed_bytes:,}",
        f"{one.tally_mib:,.2f}",
        f"{one.decode_seconds:.2g}",
    )


def _short(value: object) -> str:
    return f"{value[:8]}..." if isinstance(value, str) and len(value) > 12 else str(value)
