"""A job reserves its release in the ledger before it reads data, and charges the release once, before handing it out.

docs/adr/0009 gives the reason for this order, and what a crash between reservation, charge and hand-over costs.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from hushcount.campaigns.campaign import Campaign
from hushcount.errors import HushcountError, UsageError
from hushcount.privacy.composition import Loss
from hushcount.privacy.guarantees import Statement
from hushcount.privacy.joint import Curved
from hushcount.privacy.statement import statement, window_of
from hushcount.privacy.unit import unit_of
from hushcount.senders import Senders
from pipelines.ledger import draws
from pipelines.ledger.balance import OverLimit, balance, require_room
from pipelines.ledger.charges import Charge, Limit, charge_key
from pipelines.ledger.file import LedgerError, opened, put, read_charges, read_limit, writing
from pipelines.ledger.own_time import ALONE, LedgerClock, LedgerTime
from pipelines.ledger.runs import living, under_way
from pipelines.outputs.account import Charged, Hop, NoLedger, Unit
from pipelines.outputs.summary import HopSummary

_NOTHING = Loss(0.0, 0.0)


def _no_window(accepted: int) -> Curved | None:
    return None


@dataclass
class Charging:
    """The reservation of a job in the ledger while the job runs; without a ledger, the methods do nothing.

    Attributes:
        path, clock: as in `charging`.
        charge: the job's reservation, or the charge of an earlier run.
        most: an upper bound on the release's cost.
        draw: digest of the random release that the job hands out; None: the release is not random, or is not drawn yet.
        window_of: takes the number of accepted reports, and returns the privacy curve of the release.
    """

    path: Path | None = None
    charge: Charge | None = None
    most: Loss = _NOTHING
    clock: LedgerClock = ALONE
    draw: str | None = None
    window_of: Callable[[int], Curved | None] = _no_window

    def keep_draw(self, directory: str) -> None:
        """Copy the draw in a directory to its path beside the ledger; raises LedgerError if another draw is there."""
        if self.path is not None and self.charge is not None:
            self.draw = draws.keep_draw(self.path, self.charge.key, directory)

    def commit(self, actual: Loss, accepted: int) -> Charged | NoLedger:
        """Charge the actual cost of a release, and return the charge for the summary.

        Call this method after the job has written everything except the summary, and before the output appears. A
        charged release is not charged again; but if it now costs more than before, its charge is raised.

        Raises:
            OverLimit: the release costs more than was reserved, and does not fit into the limit; nothing is charged.
            LedgerError: the ledger cannot be used, or another draw of this release was charged.
        """
        if self.path is None or self.charge is None:
            return "no ledger"
        with opened(self.path) as connection, writing(connection):
            time = self.clock.advance(connection)
            limit = read_limit(connection, self.charge.campaign)
            charges = {charge.key: charge for charge in read_charges(connection, self.charge.campaign)}
            # The reservation may be gone, and with it the budget that it kept free, so the limit is checked again.
            afresh = replace(self.charge, state="reserved", committed_at=None)
            mine = charges.pop(self.charge.key, afresh)
            new = mine.state == "reserved"
            if not new:
                require_same_draw(self.path, mine, self.draw)
            before = _NOTHING if new else mine.loss
            cost = Loss(max(actual.epsilon, before.epsilon), max(actual.delta, before.delta))
            if new or cost != before:
                # If an earlier release under this key cost more, only the cost of both is known, not a curve.
                window = self.window_of(accepted) if cost == actual else None
                mine = replace(mine, epsilon=cost.epsilon, delta=cost.delta, window=window)
                _require_room(self.path, limit, charges.values(), mine, self.most, time)
                mine = replace(
                    mine,
                    state="committed",
                    reports=accepted if mine.hop == "analyze" else None,
                    committed_at=mine.committed_at or time.mark,
                    draw=self.draw,
                )
                put(connection, mine)
            account = balance(limit, [*charges.values(), mine], time.now)
        return Charged(
            mine.key, mine.campaign, mine.epoch, mine.hop, mine.manifest, mine.epsilon, mine.delta, mine.local,
            mine.epoch_epsilon, mine.per, mine.committed_at, mine.outline, mine.draw, new, account,
        )  # fmt: skip


@contextmanager
def charging(
    path: Path | None,
    campaign: Campaign,
    hop: Hop,
    upstream: HopSummary,
    folder: str,
    *,
    drawn: bool = False,
    clock: LedgerClock = ALONE,
) -> Iterator[Charging]:
    """Reserve a job's release while the block runs; a release that the block does not commit costs nothing.

    Args:
        path: the ledger, which is made if it is missing; None: no release is charged.
        campaign: the campaign of the release; its id names the limit.
        hop: the job that releases.
        upstream: summary of the hop before; the input files hold as many frequency reports as this summary counts.
        folder: directory of the input's block files. If the release does not fit into the limit, files are opened only
            if an input of the same sizes was charged before.
        drawn: whether this job draws the release at random.
        clock: the clock that tells the ledger the time.

    Raises:
        OverLimit: the release does not fit into the limit, even if every forwarded report is accepted.
        LedgerError, UsageError: the ledger cannot be used.
    """
    if path is None:
        yield Charging()
        return
    reports = upstream.accepted_of("reports") if hop == "analyze" and "reports" in upstream.streams else None
    stated = statement(campaign, reports, upstream.senders)
    most = cost_of(statement(campaign, None, upstream.senders), hop)

    def release_window(accepted: int) -> Curved | None:
        return window_of(campaign, upstream.senders, accepted) if hop == "analyze" else None

    wanted = replace(
        release_of(campaign, hop, cost_of(stated, hop), upstream.senders, stated.per),
        outline=draws.outline_of(folder),
        window=release_window(reports or 0),
        host=socket.gethostname(),
        pid=os.getpid(),
    )
    if upstream.charged is not None:
        wanted = _keyed(wanted, upstream.charged)
    _require_room_or_retry(path, wanted, most, clock)
    manifest = draws.manifest_in(folder)
    with under_way(path) as run:
        charge = _reserve(path, replace(wanted, run=run), manifest, most, clock)
        kept = draws.digest_of_draw(path, charge.key) if drawn and charge.state == "committed" else None
        if kept is not None:
            # If the draw is missing, the job draws again, and `commit` compares the new draw with the charged one.
            require_same_draw(path, charge, kept)
        try:
            # A draw is identified by its content, and a job that draws does not know the content yet.
            draw = manifest if hop == "discover" and not drawn else None
            yield Charging(path, charge, most, clock, draw, release_window)
        finally:
            # A reservation that cannot be deleted now counts until this process ends. An error in this step must not
            # hide the job's error.
            with suppress(HushcountError), opened(path) as connection, writing(connection):
                mine = "DELETE FROM charges WHERE key = ? AND run = ? AND state = 'reserved'"
                connection.execute(mine, (charge.key, charge.run))


def cost_of(stated: Statement, hop: Hop) -> Loss:
    """Return the cost of a release for one client, or for one report if reports are not linked to clients.

    Args:
        stated: the privacy statement of the release, for the replace-one relation.
        hop: "analyze" costs the guarantee of the mixes' noise; without noise, the shuffled guarantee, or the local
            guarantee if no shuffled one is claimed. "discover" costs the guarantee of discovery.

    Raises:
        UsageError: one client may have more reports in the batch than the noise of the mixes hides.
    """
    if hop == "analyze":
        counts = stated.noisy or stated.shuffled or stated.local
        if counts is None:
            raise UsageError(
                "nothing is guaranteed for the counts of this batch, because one client may have more reports in it "
                "than the noise hides: run fewer collectors, or publish an epoch with a larger cap"
            )
        return Loss(counts.epsilon, counts.delta)
    found = stated.discovery
    if found is None:
        raise HushcountError("the statement of a release of values has no guarantee for values: report this bug")
    # Replacing a client removes it from some bins and adds it to others, which costs as much as two changes under
    # add-remove.
    sides = 1 if found.relation == "replace-one" else 2
    return Loss(sides * found.epsilon, sides * found.delta)


def release_of(campaign: Campaign, hop: Hop, cost: Loss, senders: Senders, per: Unit) -> Charge:
    """Return the reservation of a release with this cost; its fields about the input are empty."""
    local = epoch_epsilon = None
    if hop == "analyze" and campaign.memory:
        # Clients repeat their answers.
        unit = unit_of(campaign, senders, "reports")
        local, epoch_epsilon = unit.answers * campaign.require_frequency().epsilon, campaign.epoch_epsilon
    return Charge(
        "", campaign.id, campaign.fingerprint.hex(), campaign.epoch, hop, "", "", "reserved", cost.epsilon, cost.delta,
        local, epoch_epsilon, per,
    )  # fmt: skip


def require_same_draw(path: Path, charge: Charge, draw: str | None) -> None:
    """Raise LedgerError unless a draw is the charged one; `draw` is None if no draw lies beside the ledger."""
    if draw == charge.draw:
        return
    wrong = "is missing" if draw is None else "is another one"
    raise LedgerError(
        f"this input was released on {charge.committed_at}, and its draw {draws.draw_path(path, charge.key)} {wrong}: "
        "restore the draw, or use the ledger path of that release, because a second draw would be a second release"
    )


def _keyed(wanted: Charge, manifest: str) -> Charge:
    key = charge_key(wanted.fingerprint, wanted.epoch, wanted.hop, manifest)
    return replace(wanted, manifest=manifest, key=key)


def _require_room(
    path: Path, limit: Limit | None, charges: Iterable[Charge], wanted: Charge, most: Loss, time: LedgerTime
) -> None:
    """Check that a release fits into the limit; a refusal also says if the ledger does not follow the clock."""
    try:
        require_room(limit, living(path, charges, time.now), wanted, most, time.now)
    except OverLimit as over:
        raise OverLimit("; ".join(filter(None, (str(over), time.doubt)))) from None


def _require_room_or_retry(path: Path, wanted: Charge, most: Loss, clock: LedgerClock) -> None:
    """Raise OverLimit unless a release fits, or its input, or an input of the same sizes, was charged before."""
    with opened(path, create=True) as connection:
        charges = read_charges(connection, wanted.campaign)
        alike = [charge for charge in charges if _is_alike(charge, wanted)]
        if any(charge.state == "committed" for charge in alike):
            return
        others = [charge for charge in charges if charge not in alike]
        limit = read_limit(connection, wanted.campaign)
        _require_room(path, limit, others, wanted, most, clock.time(connection))


def _is_alike(charge: Charge, wanted: Charge) -> bool:
    """Return whether a charge may be for the wanted release, without reading the release's input."""
    same = (charge.fingerprint, charge.epoch, charge.hop) == (wanted.fingerprint, wanted.epoch, wanted.hop)
    return same and (charge.manifest == wanted.manifest if wanted.manifest else charge.outline == wanted.outline)


def _reserve(path: Path, wanted: Charge, manifest: str, most: Loss, clock: LedgerClock) -> Charge:
    """Reserve a release and return it, also if another run reserved it; if it is charged already, return its charge."""
    with opened(path) as connection, writing(connection):
        charges = {charge.key: charge for charge in read_charges(connection, wanted.campaign)}
        # The auxiliary server's charge gives a release its key; if another draw was charged under that key, this
        # release gets its own key.
        named = charges.get(wanted.key)
        if not wanted.manifest or (named is not None and named.draw not in (None, manifest)):
            wanted = _keyed(wanted, manifest)
        mine = charges.pop(wanted.key, None)
        if mine is not None and mine.state == "committed":
            return mine
        time = clock.advance(connection)
        limit = read_limit(connection, wanted.campaign)
        _require_room(path, limit, charges.values(), wanted, most, time)
        wanted = replace(wanted, reserved_at=time.mark)
        put(connection, wanted)
    return wanted
