"""What a ledger holds: limits and charges."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any, Literal

from hushcount.privacy.blanket import BlanketLaw
from hushcount.privacy.composition import Loss
from hushcount.privacy.joint import Part, Window
from pipelines.outputs.account import Admission, Hop, Unit

_EVER = datetime.min.replace(tzinfo=timezone.utc)


@dataclass(frozen=True)
class Limit:
    """What the releases of one campaign may come to.

    Attributes:
        campaign: its id, over all its epochs.
        epsilon: nats, above 0.
        delta: in [0, 1).
        renew_days: after so many days earlier charges no longer count; None: they always count.
        since: when the first period begins, ISO 8601 in UTC; before that everything counts.
        composition: "basic": the sums keep within the limit, whatever the parameters of a release follow from.
            "joint": the smallest bound does; all charges of a period are of one campaign file, and the operator
            declared that its parameters, and its numbers of reports, follow from no result.
    """

    campaign: str
    epsilon: float
    delta: float
    renew_days: int | None
    since: str
    composition: Admission = "basic"

    def period(self, now: datetime) -> tuple[datetime, datetime | None]:
        """Return from when on charges count, and when the next period begins; None for never."""
        begin = datetime.fromisoformat(self.since)
        if self.renew_days is None:
            return begin, None
        length = timedelta(days=self.renew_days)
        number = max(0, (now - begin) // length)
        current = begin + number * length
        # Before the first period everything counts, and in it too.
        return current if number else _EVER, current + length


@dataclass(frozen=True)
class Charge:
    """One release, reserved or charged.

    Attributes:
        key: digest of fingerprint, epoch, hop and manifest; each key is charged once.
        campaign: its id.
        fingerprint: of the campaign file, hexadecimal.
        epoch: of the campaign file.
        hop: which job releases.
        manifest: digest of the contents of the input's files.
        outline: digest of their sizes, known without reading them.
        state: "reserved" by a run that has released nothing yet, or "committed".
        epsilon: nats, of one client with at most as many reports as the cap, or of one report; replace-one.
        delta: of the same.
        local: the local epsilon; and
        epoch_epsilon: that of all releases of the epoch together. Both only where clients repeat their answers.
        per: one client or one report.
        reports: how many were accepted; None for discovery.
        reserved_at, committed_at: ISO 8601 in UTC; the second is None while the charge is reserved.
        host, pid, run: the machine, the process and the name of the run.
        draw: digest of the random release that was made or opened under this key; None if nothing is drawn, and while
            the charge is reserved.
        window: the whole curve of a release of counts, not only epsilon and delta; None where that is all that
            composes. Its column is `curve`.
    """

    key: str
    campaign: str
    fingerprint: str
    epoch: int
    hop: Hop
    manifest: str
    outline: str
    state: Literal["reserved", "committed"]
    epsilon: float
    delta: float
    local: float | None
    epoch_epsilon: float | None
    per: Unit
    reports: int | None = None
    reserved_at: str = ""
    committed_at: str | None = None
    host: str = ""
    pid: int = 0
    run: str = ""
    draw: str | None = None
    window: Window | None = field(default=None, compare=False)

    @property
    def part(self) -> Part:
        """What composes jointly."""
        return self.loss if self.window is None else self.window

    def row(self) -> dict[str, Any]:
        """Return its columns."""
        values = asdict(self)
        del values["window"]
        return values

    @property
    def curve(self) -> str | None:
        """The whole curve, as `window_in` reads it."""
        if self.window is None:
            return None
        law = self.window.law
        numbers = (float(number) for number in (law.epsilon, law.single, law.pair, law.excess))
        return " ".join(map(repr, (*numbers, int(self.window.reports), int(self.window.of_client))))

    @property
    def loss(self) -> Loss:
        """What the release costs if it stands alone; `balance.losses` joins those of one epoch."""
        return Loss(self.epsilon, self.delta)

    @property
    def stamped(self) -> str:
        """When it was charged, or else reserved."""
        return self.committed_at or self.reserved_at


def window_in(curve: str | None) -> Window | None:
    """Return the whole curve of a charge, as its row has it."""
    if curve is None:
        return None
    *law, reports, of_client = curve.split()
    return Window(BlanketLaw(*map(float, law)), int(reports), int(of_client))


def charge_key(fingerprint: str, epoch: int, hop: str, manifest: str) -> str:
    """Return the key under which a release is charged once: 32 bytes, hexadecimal."""
    return digest_of([fingerprint, epoch, hop, manifest])


def digest_of(data: Any) -> str:
    """Return the BLAKE2b-256 of JSON data."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=32).hexdigest()


def stamp(moment: datetime) -> str:
    """Return a moment as ISO 8601 in UTC, to the second."""
    return moment.astimezone(timezone.utc).isoformat(timespec="seconds")
