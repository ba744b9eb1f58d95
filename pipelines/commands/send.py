"""hushcount send: report values from a shell, as an app does."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from hushcount.delivery import Delivery, Issuer, Sender, Site
from hushcount.errors import HushcountError, UsageError
from hushcount.formats.client_files import read_private
from hushcount.formats.lines import bare_lines, is_utf8, text_of
from hushcount.newest import Newest
from hushcount.policy import Policy
from pipelines.console import options
from pipelines.console.answer import Answer, note
from pipelines.console.tables import by_reason, facts, stamp

_LONGEST_LINE = 1 << 16


def send(
    site: Annotated[str, Option(help="Address of the collector, as in https://collector.example.com.")],
    policy: Annotated[Path, Option(help="Policy file, from hushcount campaign policy.")],
    values: Annotated[
        list[str] | None, Argument(help="Values of one person; - reads them from standard input, one a line.")
    ] = None,
    folder: Annotated[
        Path | None, Option(help="Directory of this person only: budget, memory, secret, and unsent reports.")
    ] = None,
    by: Annotated[
        list[str] | None, Option(help="The person's coordinate on an axis, as version=2.1; may be repeated.")
    ] = None,
    window: Annotated[
        str,
        Option(help="Length of the operator's windows, as in 1d or 15m; of a calendar, the shortest that you allow."),
    ] = "1d",
    keep_values: Annotated[bool, Option("--keep-values", help="Keep unsent values unencrypted in the folder.")] = False,
    evaluator: Annotated[
        str | None, Option(help="Address of the evaluator, if the campaign has one elsewhere than the collector.")
    ] = None,
    name: Annotated[
        str | None, Option(help="Name of the collector, if the campaign has several.", show_default="the only one")
    ] = None,
    issuer: Annotated[
        str | None, Option(help="Address of the issuer, if the campaign asks for passes; needs --authorization-file.")
    ] = None,
    authorization_file: Annotated[
        Path | None, Option(help="File of mode 0600 with the header Authorization that the issuer's rule accepts.")
    ] = None,
    plain_http: Annotated[bool, Option("--plain-http", help="Permit http:// to another machine.")] = False,
) -> Answer:
    """Use it to report from a script as one person: it sends at once, without an app's random delay.

    Give a folder, or caps and budgets begin anew each time. Other users of the machine can see values on a command
    line; - hides them. Without values it sends the unsent reports in the folder. Exit status 3: reports are still
    unsent, run it again later.

    Example: hushcount send --site https://collector.example.com --policy policy.json dark-mode
    """
    demands, coordinates = Policy.read(policy, Newest()), options.coordinates("--by", by)
    # A report with a coordinate that no campaign can have would be spent on "other", so none is made.
    known = (*demands.axes, *demands.public_axes)
    if strange := [axis for axis, _ in coordinates if axis not in known]:
        there = ", ".join(known) or "it has none"
        raise UsageError(f"--by names axis {strange[0]!a}, must be one of axes and public_axes in {policy}: {there}")
    if not values and folder is None:
        raise UsageError("no value is given: give values, - for standard input, or --folder to send waiting reports")
    sender = Sender(
        Site(site, name, plain=plain_http),
        demands,
        folder,
        window=options.span("--window", window),
        keep_values=keep_values,
        delay=timedelta(),
        evaluator=evaluator,
        issuer=_issuer(issuer, authorization_file, plain_http),
        most_queued=100_000,
        strict=True,
    )
    reported = 0
    # Send old reports before new ones are made: only sending fetches a newer campaign file, which the new should use.
    before = sender.deliver(early=True) if folder and values else Delivery()
    try:
        for value in _given(values or []):
            sender.report(value, by=dict(coordinates))
            reported += 1
    except HushcountError:
        done = before.then(sender.deliver(early=True))
        note(f"values reported before the error: {reported}; reports sent: {done.sent}, waiting: {done.waiting}")
        raise
    done = before.then(sender.deliver(early=True))
    refused = "none is given" if issuer is None else "the issuer is asked again later"
    for event in sender.log:
        refused = event.reason if event.what == "no_pass" else refused
    return _answer(reported, done, folder, refused)


def _issuer(address: str | None, file: Path | None, plain: bool) -> Issuer | None:
    if (address is None) != (file is None):
        raise UsageError("issuer and authorization-file belong together: give both, or neither")
    if address is None or file is None:
        return None
    _authorization(file)
    return Issuer(Site(address, plain=plain), partial(_authorization, file))


def _authorization(file: Path) -> str:
    """Return the first line of a private file; UsageError: it is missing, empty, too long, or open to others."""
    raw = read_private(file, "authorization", _LONGEST_LINE)
    lines = [] if raw is None else raw.decode(errors="replace").splitlines()
    if not lines:
        raise UsageError(f"authorization file {file} must have the value of the header as its first line")
    return lines[0]


def _given(values: list[str]) -> Iterator[str]:
    if values != ["-"]:
        yield from values
        return
    lines = iter(lambda: sys.stdin.buffer.readline(_LONGEST_LINE), b"")
    for number, line in enumerate(bare_lines(lines, "standard input"), start=1):
        if not is_utf8(value := text_of(line)):
            raise UsageError(f"line {number} of standard input is not UTF-8: convert it")
        yield value


def _answer(reported: int, done: Delivery, folder: Path | None, refused: str) -> Answer:
    until = None if done.held_until is None else stamp(done.held_until)
    shown = {"values": reported, "reports sent": done.sent, "dropped": by_reason(done.dropped), "waiting": done.waiting}
    if done.blank:
        shown["sent without a value"] = by_reason(done.blank)
    if done.no_pass:
        shown["reports wait"] = f"for a pass of the issuer: {refused}"
    if until is not None:
        shown["nothing is sent before"] = until
    failure = ""
    if done.dropped:
        failure = f"{sum(done.dropped.values())} reports were given up: {by_reason(done.dropped)}"
    elif done.waiting and folder is None:
        failure = f"the collector did not take {done.waiting} reports, so they are lost: give --folder to keep them"
    data = {"values": reported, **asdict(done), "held_until": until}
    return Answer(data, [facts("", shown)], failure, status=3 if done.waiting else 0)
