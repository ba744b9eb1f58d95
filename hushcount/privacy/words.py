"""A privacy statement in words: plain sentences for people who decide about a product, exact ones for engineers."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Literal

from hushcount.campaigns.campaign import Stream
from hushcount.campaigns.parts import SamplePart
from hushcount.maths.figures import LARGEST, odds_of, rounded_up, within
from hushcount.privacy.guarantees import Discovery, Released, Statement
from hushcount.privacy.unit import Unit, Units

_ONE_VALUE = "sent one value rather than another"
_TOOK_PART = "took part (what the exact numbers of reports tell of that comes on top)"
_ROLES = "as long as the parties keep to their roles"
_EITHER = "as long as one of shuffler and auxiliary server keeps to its role"
_KEYED = "the auxiliary server can test a value that it guesses"
_OBLIVIOUS = (
    "the auxiliary server can test a value that it guesses only together with the evaluator, or by an "
    "evaluation for each guess; once the evaluator's key is destroyed, it can test only guesses that somebody had "
    "evaluated before"
)
_EXACT = " How many reports there were is published exactly, and shows that a client was added or removed."


def plain_sentences(result: Statement, units: Units) -> Iterator[str]:
    """Yield plain sentences about what results tell about one person; each sentence is true without the others.

    The same figures give the same sentences, so two jobs say the same about the same clients. `odds.Odds` bounds the
    odds between any two values that a person may have sent. All figures are rounded up.
    """
    local, counts, found, both = result.local, result.shuffled, result.discovery, result.total
    lasting = None if local is None else local.epoch_epsilon
    # If there are two streams, each sentence names its own stream.
    counted = " to be counted" if found else ""
    if counts and not lasting:
        yield (
            f"The counts change the odds that {units.reports.person(counted)} {_ONE_VALUE} by {within(counts.odds)}, "
            f"{_ROLES}."
        )
    if result.noisy:
        yield (
            f"The counts change the odds that {units.reports.person(counted)} {_ONE_VALUE} by "
            f"{within(result.noisy.odds)}, {_EITHER}."
        )
        yield (
            "The reports are sealed, not randomised: the shuffler, the auxiliary server and the analyzer together, or "
            "one operator with their keys, read the value of every client; and the shuffler and the auxiliary server "
            "together, with this result, know every exact count."
        )
    if found:
        relation = _ONE_VALUE if found.relation == "replace-one" else _TOOK_PART
        enough = "enough people sent it" if result.per == "client" else "enough reports hold it"
        count, counts_too = (", with a rough count,", " and their counts") if found.count_deviation else ("", "")
        yield (
            f"A value is shown{count} only when {enough}, about {found.clients_for_even_chance:,}: the values "
            f"found{counts_too} change the odds that {units.discovery.person(' for discovery')} {relation} by "
            f"{within(found.odds)}, {_ROLES}."
        )
    if local is not None and lasting:
        changes = "; when a value changed is not hidden" if (local.values or 0) > 1 else ""
        yield (
            "All counts of the epoch together, however often a person reports, change the odds that any one person "
            f"{_ONE_VALUE} by {odds_of(lasting)}, even if all parties broke their promises together: each report is "
            f"randomised on the person's own device and repeated from there{changes}."
        )
    if both:
        yield (
            f"Counts and values found together change the odds that {units.person()} {_ONE_VALUE} by "
            f"{within(both.odds)}, {_ROLES}."
        )
    if local is not None and not lasting:
        yield (
            f"Even if all parties broke their promises together, the odds that {units.reports.person(counted)} "
            f"{_ONE_VALUE} would change by {odds_of(local.epsilon)}: each report is randomised on the person's own "
            "device."
        )
    if found:
        yield (
            "If the analyzer and the auxiliary server broke their promises together, the values sent for discovery "
            "would be open to them: they are sealed, not randomised."
        )


def sample_sentence(sample: SamplePart) -> str:
    """Return what a sample adds to a statement: nothing is claimed for it, and a layer bounds what one device pays."""
    return (
        f"A sample of {sample.share:.4g} of all clients is asked, in layer {sample.layer}: nothing is gained by "
        "sampling, because a report shows that its client was asked; other campaigns of the layer do not ask the same "
        "client, as long as its random id lives."
    )


def axes_sentences(private: Collection[str], public: Collection[str]) -> Iterator[str]:
    """Yield what axes add to a statement: what is protected together with the value, and what is not protected."""
    if private:
        yield (
            f"A report tells a value together with {', '.join(private)}: what is said here of a value holds for all of "
            "them together, at the same figures."
        )
    if public:
        yield (
            f"Not protected: the sender's {' and '.join(public)}. The parties see it beside each report, and it links "
            "the reports of a person over windows. Reports are counted in groups of the minimum batch at least. A gain "
            "by mixing is claimed only where an issuer authenticates senders, because invented reports could be all "
            "others of a group."
        )


State = Literal["person", "report", "none"]
"""Whom a guarantee protects: a person with all that one window counts, each report alone, or nobody."""


def in_one_line(result: Statement) -> tuple[State, str]:
    """Return whom the guarantee protects, and its figure for all that the run released, as one line.

    If counts and values found were both released, the figure is of both together. It is rounded up.
    """
    local, found, noisy = result.local, result.discovery, result.noisy
    whole = result.total or result.shuffled or noisy or found
    lasting = None if local is None else local.epoch_epsilon
    person = result.per == "client" or (lasting is not None and found is None)
    about = f"the odds about {'one person' if person else 'the sender of one report'} by"
    if whole is not None and (found is not None or not lasting):
        within_one = f"One result changes {about} {within(whole.odds)}"
        trusted = _EITHER if whole is noisy else "if the parties keep to their roles"
        epsilon, said = whole.odds.epsilon, f"{within_one}, {trusted}"
    elif local is not None:
        epsilon = lasting or local.epsilon
        what = "All counts of an epoch change" if lasting else "One result changes"
        said = f"{what} {about} {odds_of(epsilon)}, even if all parties work together"
    else:
        return "none", "Nothing is guaranteed."
    unbound = "" if person else "; nothing limits how many reports a person sends"
    counted = found is not None and whole is found and found.relation != "replace-one"
    exact = "; exact numbers of reports tell more" if counted else ""
    sealed = "; reports are sealed, not randomised" if noisy is not None else ""
    return "none" if epsilon >= LARGEST else "person" if person else "report", f"{said}{sealed}{exact}{unbound}."


def exact_sentences(result: Statement, units: Units, covered: Collection[Stream], reports: int | None) -> Iterator[str]:
    """Yield the statement for engineers; `covered` are its streams, `reports` is the number of frequency reports."""
    yield from _of_whom(result, units, covered)
    local, shuffled, found, total = result.local, result.shuffled, result.discovery, result.total
    if local is not None:
        yield (
            f"Every frequency report is randomised on the client: whoever sees it, even all parties together, can tell "
            f"any two values apart only by a factor of e^{rounded_up(local.epsilon_per_report)} for one report "
            f"(local epsilon {rounded_up(local.epsilon)} for {local.unit}, replace-one)."
        )
        lasting = local.epoch_epsilon
        if lasting:
            yield (
                "Clients repeat their answers within the epoch: all frequency reports that a client sends in it, "
                f"however many, have local epsilon {rounded_up(lasting)} together, replace-one; the analyzer sees "
                f"which of them are alike{', and so when a value changed' if (local.values or 0) > 1 else ''}."
            )
        if shuffled is not None:
            only = ", and as long as it gets no other batch of the epoch, counted or not" if lasting else ""
            yield (
                f"Mixed among {shuffled.reports:,} reports, what the analyzer receives is "
                f"{_pair(shuffled)}-private for {shuffled.unit}, replace-one, if the shuffler is honest and those "
                f"reports are{only}."
            )
        elif reports is not None:
            yield (
                f"For {reports:,} reports no gain by shuffling is claimed: the local guarantee is the whole guarantee."
            )
    if result.noisy is not None:
        yield (
            "Frequency reports are sealed, not randomised: there is no local guarantee, and the shuffler, the "
            "auxiliary server and the analyzer together read every value. Counts have the noise of both mixes, of "
            f"standard deviation {rounded_up(result.noisy.count_deviation)}: they are {_pair(result.noisy)}-private "
            f"for {result.noisy.unit}, replace-one, if the shuffler or the auxiliary server is honest."
        )
    if found is not None:
        enough = "clients sent" if result.per == "client" else "reports hold"
        exact = _EXACT if found.relation == "add-remove" else ""
        yield (
            f"Discovery reports are not randomised: the auxiliary server reveals a value only when enough {enough} "
            f"it (about {found.clients_for_even_chance} for an even chance){_numbers(found)}, which is {_pair(found)}"
            f"-private for {found.unit}, {found.relation}, if the shuffler and the auxiliary server are honest; "
            f"{_OBLIVIOUS if found.names == 'oblivious' else _KEYED}.{exact}"
        )
    if total is not None:
        who = "A client that sends both" if result.per == "client" else "Whoever sends one report of each stream"
        yield f"{who} pays for both: {_pair(total)}, replace-one."


def _of_whom(result: Statement, units: Units, covered: Collection[Stream]) -> Iterator[str]:
    if result.per == "report":
        yield (
            f"Senders were told apart by authentication {result.authentication}, which tells no client from another: "
            "the cap bound nobody, each guarantee is for one report, and a client that sent several pays for each of "
            "them."
        )
        return
    both: tuple[tuple[Stream, str, Unit], ...] = (
        ("reports", "frequency", units.reports), ("discovery", "discovery", units.discovery)
    )  # fmt: skip
    for stream, kind, unit in both:
        if stream in covered and unit.allotments > 1:
            yield (
                f"The {kind} reports are of {unit.allotments:,} collector windows, windows at one collector each: a "
                f"client may have the cap of {unit.cap:,} in each of them, {unit.reports:,} in all, which every "
                "guarantee is for."
            )


def _numbers(found: Discovery) -> str:
    if found.count_deviation is None:
        return ""
    return f", and the number of them with noise of standard deviation {rounded_up(found.count_deviation)}"


def _pair(part: Released) -> str:
    return f"({rounded_up(part.epsilon)}, {rounded_up(part.delta)})"
