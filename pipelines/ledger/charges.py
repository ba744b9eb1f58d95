"""The records of a ledger: limits and charges."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any, Literal

from hushcount.privacy.blanket import BlanketLaw
from hushcount.privacy.composition import Loss
from hushcount.privacy.joint import Curved, Part, Window
from hushcount.privacy.moved import Moved
from pipelines.outputs.account import Admission, Hop, Unit

_NOISE = "noise"
"""The first word of a curve of noise of the mixes."""
_EVER = datetime.min.replace(tzinfo=timezone.utc)


@dataclass(frozen=True)
class Limit:
    """The greatest loss that the releases of one campaign may cost together.

    Attributes:
        campaign: the campaign's id; the limit covers all its epochs.
        epsilon: nats, above 0.
        delta: in [0, 1).
        renew_days: length of a period in days, after which the charges of the period no longer count; None: charges
            always count.
        since: when the first period begins, ISO 8601 in UTC; charges before this time count in the first period too.
        composition: "basic": the sums of epsilons and of deltas stay within the limit, even if a release's parameters
            depend on earlier results. "joint": the smallest bound on the joint loss stays within the limit. With
            "joint", all charges of a period are of one campaign file, and the operator declared that neither the file's
            parameters nor its numbers of reports depend on any result.
    """

    campaign: str
    epsilon: float
    delta: float
    renew_days: int | None
    since: str
    composition: Admission = "basic"

    def period(self, now: datetime) -> tuple[datetime, datetime | None]:
        """Return the moment from which charges count, and when the next period begins (None without renewal)."""
        begin = datetime.fromisoformat(self.since)
        if self.renew_days is None:
            return begin, None
        length = timedelta(days=self.renew_days)
        number = max(0, (now - begin) // length)
        current = begin + number * length
        # Before the end of the first period, every charge counts.
        return current if number else _EVER, current + length


@dataclass(frozen=True)
class Charge:
    """One release, reserved or charged.

    Attributes:
        key: digest of fingerprint, epoch, hop and manifest; each key is charged once.
        campaign: its id.
        fingerprint: fingerprint of the campaign file, in hexadecimal digits.
        epoch: number of the campaign file's epoch.
        hop: the job that makes the release.
        manifest: digest of the contents of the input's files.
        outline: digest of the sizes of the input's files; computed without reading the files.
        state: "reserved" by a run that has released nothing yet, or "committed".
        epsilon: epsilon in nats, for one client with at most as many reports as the cap, or for one report, under the
            replace-one relation.
        delta: delta, for the same client or the same report as epsilon.
        local: the local epsilon, if clients repeat their answers; else None.
        epoch_epsilon: the epsilon of all releases of the epoch together, if clients repeat their answers; else None.
        per: whether the guarantee is for one client or for one report.
        reports: number of accepted reports; None for discovery.
        reserved_at, committed_at: ISO 8601 in UTC; committed_at is None while the charge is reserved.
        host, pid, run: the machine, the process and the name of the run.
        draw: digest of the random release that a job drew or opened under this key; None if the release is not random,
            and while the charge is reserved.
        window: the whole privacy curve of a release of counts; None if only its epsilon and delta are composed. Its
            column is `curve`.
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
    window: Curved | None = field(default=None, compare=False)

    @property
    def part(self) -> Part:
        """The charge's part in joint composition: its curve, or its loss if it has no curve."""
        return self.loss if self.window is None else self.window

    def row(self) -> dict[str, Any]:
        """Return the columns of the charge, except the curve."""
        values = asdict(self)
        del values["window"]
        return values

    @property
    def curve(self) -> str | None:
        """The whole curve as text, which `window_in` reads."""
        if self.window is None:
            return None
        if isinstance(self.window, Moved):
            return " ".join(map(str, (_NOISE, *self.window.numbers)))
        law = self.window.law
        numbers = (float(number) for number in (law.epsilon, law.single, law.pair, law.excess))
        return " ".join(map(repr, (*numbers, int(self.window.reports), int(self.window.of_client))))

    @property
    def loss(self) -> Loss:
        """The cost of this release alone; `balance.losses` joins the charges of one epoch."""
        return Loss(self.epsilon, self.delta)

    @property
    def stamped(self) -> str:
        """The time when the release was charged or, if it is not charged yet, reserved."""
        return self.committed_at or self.reserved_at


def window_in(curve: str | None) -> Curved | None:
    """Return the whole curve of a charge from the text in its row."""
    if curve is None:
        return None
    if curve.startswith(_NOISE):
        return Moved.of(*map(int, curve.split()[1:]))
    *law, reports, of_client = curve.split()
    return Window(BlanketLaw(*map(float, law)), int(reports), int(of_client))


def charge_key(fingerprint: str, epoch: int, hop: str, manifest: str) -> str:
    """Return the key under which a release is charged once: 32 bytes, in hexadecimal digits."""
    return digest_of([fingerprint, epoch, hop, manifest])


def digest_of(data: Any) -> str:
    """Return the BLAKE2b-256 of JSON data."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=32).hexdigest()


def stamp(moment: datetime) -> str:
    """Return a moment as ISO 8601 in UTC, to the second."""
    return moment.astimezone(timezone.utc).isoformat(timespec="seconds")
