"""The ledger of a job: its release is reserved before data is read, and charged, once, before it is handed out.

Why in this order, and what a crash in between costs: docs/adr/0009.
"""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from hushcount.campaigns.campaign import Campaign
from hushcount.errors import HushcountError
from hushcount.privacy.composition import Loss
from hushcount.privacy.guarantees import Statement
from hushcount.privacy.statement import statement
from hushcount.privacy.unit import unit_of
from hushcount.senders import Senders
from pipelines.ledger import input
from pipelines.ledger.balance import OverLimit, balance, require_room
from pipelines.ledger.draws import digest_of_draw, draw_path, fix_draw
from pipelines.ledger.file import LedgerError, opened, writing
from pipelines.ledger.own_time import LedgerTime, advanced, ledger_time
from pipelines.ledger.records import Charge, Hop, Limit, charge_key, put, read_charges, read_limit
from pipelines.outputs.summary import HopSummary

_NOTHING = Loss(0.0, 0.0)


@dataclass
class Charging:
    """A job's place in the ledger while it runs; without a ledger all of it does nothing.

    Attributes:
        path: the ledger's file, or None.
        charge: what the job reserved, or its charge of an earlier time.
        most: what the release may come to at most.
        known: the latest moment that is known to have come by what else tells the time, or None.
        draw: digest of the random release that it hands out; None: it draws none, or has not drawn yet.
    """

    path: Path | None = None
    charge: Charge | None = None
    most: Loss = _NOTHING
    known: datetime | None = None
    draw: str | None = None

    def fix_draw(self, directory: str) -> None:
        """Let a release that was drawn into a directory be the first one drawn for its key."""
        if self.path is not None and self.charge is not None:
            self.draw = fix_draw(self.path, self.charge.key, directory)

    def commit(self, actual: Loss, accepted: int) -> Mapping[str, Any]:
        """Charge a release what it comes to, and return what the summary says of that; {} without a ledger.

        To be called when all but the summary is written, before the output is put in its place. A release that is
        charged already is not charged again; one that came out dearer than before is raised to that.

        Raises:
            OverLimit: it costs more than was reserved and does not fit; nothing is charged.
            LedgerError: the ledger cannot be used; or another draw than this one was charged.
        """
        if self.path is None or self.charge is None:
            return {}
        reports = accepted if self.charge.hop == "analyze" else None
        with opened(self.path) as connection, writing(connection):
            time = advanced(connection, self.known)
            limit = read_limit(connection, self.charge.campaign)
            charges = read_charges(connection, self.charge.campaign)
            others = [charge for charge in charges if charge.key != self.charge.key]
            # A reservation may be gone: it held room, and room is looked for again.
            afresh = replace(self.charge, state="reserved", committed_at=None)
            mine = next((charge for charge in charges if charge.key == self.charge.key), afresh)
            new = mine.state == "reserved"
            if not new:
                require_same_draw(self.path, mine, self.draw)
            before = _NOTHING if new else mine.loss
            cost = Loss(max(actual.epsilon, before.epsilon), max(actual.delta, before.delta))
            if cost != before or new:
                charged = replace(mine, epsilon=cost.epsilon, delta=cost.delta)
                _require_room(limit, others, charged, self.most, time)
                at = mine.committed_at or time.mark
                mine = replace(charged, state="committed", reports=reports, committed_at=at, draw=self.draw)
                put(connection, mine)
            account = balance(limit, [*others, mine], time.now)
        names = (
            "key", "campaign", "epoch", "hop", "manifest", "epsilon", "delta", "local", "epoch_epsilon", "per",
            "committed_at",
        )  # fmt: skip
        told = {name: getattr(mine, name) for name in names}
        return {"charged": {**told, "new": new}, **account.as_data()}


@contextmanager
def charging(
    path: Path | None,
    campaign: Campaign,
    hop: Hop,
    upstream: HopSummary,
    folder: str,
    *,
    drawn: bool = False,
    known: datetime | None = None,
) -> Iterator[Charging]:
    """Reserve a job's release for as long as the block runs; whatever is not committed by then costs nothing.

    Args:
        path: the ledger, made where it is missing; None: nothing is charged.
        campaign: whose limit it is, by its id.
        hop: the job that releases.
        upstream: summary of the hop before, whose count of frequency reports the files hold if those are released.
        folder: directory of the input's block files. Where there is no room and none of that outline was charged, not
            one of them is opened here.
        drawn: whether this job draws the release at random.
        known: the latest moment that is known to have come by what else than the clock tells the time; None: nothing
            but the ledger does.

    Raises:
        OverLimit: the release does not fit, even if every report that was forwarded is accepted.
        LedgerError, UsageError: the ledger cannot be used.
    """
    if path is None:
        yield Charging()
        return
    wanted = _wanted(campaign, hop, upstream, folder)
    most = cost_of(statement(campaign, None, upstream.senders), hop)
    _require_room_or_retry(path, wanted, most, known)
    manifest = input.manifest(folder)
    # A random release is what it holds: what is drawn here is not known yet.
    draw = manifest if hop == "discover" and not drawn else None
    # Which release it is, the auxiliary server says; another one under the name of one that was charged is charged too.
    if not wanted.manifest or not _is_first_opened(path, wanted.key, manifest):
        wanted = _keyed(wanted, manifest)
    charge = _reserve(path, wanted, most, known)
    if drawn and charge.state == "committed":
        require_same_draw(path, charge, digest_of_draw(path, charge.key))
    try:
        yield Charging(path, charge, most, known, draw)
    finally:
        # A reservation that cannot be dropped now ends with this process; no error may hide the job's own.
        with suppress(HushcountError):
            _drop(path, charge)


def cost_of(stated: Statement, hop: Hop) -> Loss:
    """Return what a release costs one client, or one report where none is told apart, by its privacy statement.

    Args:
        stated: the statement, replace-one, of what the job released.
        hop: "analyze", whose cost is the shuffled guarantee, or the local one where none is claimed; or "discover".
    """
    if hop == "analyze":
        counts = stated.shuffled or stated.local
        if counts is None:
            raise HushcountError("the statement of a release of counts says nothing of them: report this bug")
        return Loss(counts.epsilon, counts.delta)
    found = stated.discovery
    if found is None:
        raise HushcountError("the statement of a release of values says nothing of them: report this bug")
    # One client replaced is one removed from some bins and one added to others: two releases under add-remove.
    sides = 1 if found.relation == "replace-one" else 2
    return Loss(sides * found.epsilon, sides * found.delta)


def linked(campaign: Campaign, hop: Hop, senders: Senders) -> tuple[float | None, float | None]:
    """Return a release's local epsilon and its epoch's, where clients repeat their answers; None and None elsewhere."""
    if hop == "discover" or not campaign.memory:
        return None, None
    unit = unit_of(campaign, senders, "reports")
    return unit.answers * campaign.require_frequency().epsilon, campaign.epoch_epsilon


def _wanted(campaign: Campaign, hop: Hop, upstream: HopSummary, folder: str) -> Charge:
    """Return the reservation to ask for: what the release costs if every report that was forwarded is accepted."""
    reports = upstream.accepted_of("reports") if hop == "analyze" and "reports" in upstream.streams else None
    stated = statement(campaign, reports, upstream.senders)
    least = cost_of(stated, hop)
    local, epoch_epsilon = linked(campaign, hop, upstream.senders)
    wanted = Charge(
        key="", campaign=campaign.id, fingerprint=campaign.fingerprint.hex(), epoch=campaign.epoch, hop=hop,
        manifest="", outline=input.outline(folder), state="reserved", epsilon=least.epsilon, delta=least.delta,
        local=local, epoch_epsilon=epoch_epsilon, per=stated.per, reports=None,
        reserved_at="", committed_at=None, host=socket.gethostname(), pid=os.getpid(),
        run=uuid.uuid4().hex,
    )  # fmt: skip
    return wanted if upstream.charged is None else _keyed(wanted, upstream.charged)


def _keyed(wanted: Charge, manifest: str) -> Charge:
    key = charge_key(wanted.fingerprint, wanted.epoch, wanted.hop, manifest)
    return replace(wanted, manifest=manifest, key=key)


def require_same_draw(path: Path, charge: Charge, draw: str | None) -> None:
    """Refuse to hand out another random release than the one that was charged.

    Args:
        path: the ledger.
        charge: of the release.
        draw: digest of the one that is to be handed out; None: there is none beside the ledger, or nothing is drawn.
    """
    if draw == charge.draw:
        return
    wrong = "is missing" if draw is None else "is another one"
    raise LedgerError(
        f"this input was released on {charge.committed_at}, and its draw {draw_path(path, charge.key)} {wrong}: "
        "restore it, or name the ledger as when it was released; a second draw would be a second release"
    )


def _is_first_opened(path: Path, key: str, manifest: str) -> bool:
    """Return whether a release is the one that was charged under a key, or none was yet."""
    with opened(path) as connection:
        charged = next((charge for charge in read_charges(connection) if charge.key == key), None)
    return charged is None or charged.draw in (None, manifest)


def _require_room(limit: Limit | None, charges: Iterable[Charge], wanted: Charge, most: Loss, time: LedgerTime) -> None:
    """Check that a release fits; if it does not, say also where the clock is not believed."""
    try:
        require_room(limit, charges, wanted, most, time.now)
    except OverLimit as over:
        raise OverLimit("; ".join(filter(None, (str(over), time.doubt)))) from None


def _require_room_or_retry(path: Path, wanted: Charge, most: Loss, known: datetime | None) -> None:
    """Refuse a release without room, unless files of these sizes were charged before, or the very input was."""
    with opened(path, create=True) as connection:
        charges = read_charges(connection, wanted.campaign)
        if any(charge.state == "committed" and _is_alike(charge, wanted) for charge in charges):
            return
        others = [charge for charge in charges if not _is_alike(charge, wanted)]
        limit = read_limit(connection, wanted.campaign)
        _require_room(limit, others, wanted, most, ledger_time(connection, known))


def _is_alike(charge: Charge, wanted: Charge) -> bool:
    """Return whether a charge may be of the release that is wanted, as far as is known without reading its input."""
    same = (charge.fingerprint, charge.epoch, charge.hop) == (wanted.fingerprint, wanted.epoch, wanted.hop)
    return same and (charge.manifest == wanted.manifest if wanted.manifest else charge.outline == wanted.outline)


def _reserve(path: Path, wanted: Charge, most: Loss, known: datetime | None) -> Charge:
    """Reserve a release, taking over what another run reserved for it, and return it; or return its charge."""
    with opened(path) as connection, writing(connection):
        charges = read_charges(connection, wanted.campaign)
        mine = next((charge for charge in charges if charge.key == wanted.key), None)
        if mine is not None and mine.state == "committed":
            return mine
        others = [charge for charge in charges if charge.key != wanted.key]
        time = advanced(connection, known)
        _require_room(read_limit(connection, wanted.campaign), others, wanted, most, time)
        wanted = replace(wanted, reserved_at=time.mark)
        put(connection, wanted)
    return wanted


def _drop(path: Path, charge: Charge) -> None:
    """Drop a reservation, if it is still this run's."""
    with opened(path) as connection, writing(connection):
        connection.execute(
            "DELETE FROM charges WHERE key = ? AND run = ? AND state = 'reserved'", (charge.key, charge.run)
        )
