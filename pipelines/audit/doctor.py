"""hushcount doctor: look at a deployment before it fails, and say what to do."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Literal

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.signatures import signature_path
from hushcount.errors import HushcountError
from pipelines.audit.foresight import next_epoch, year
from pipelines.audit.report_checks import OF_REPORTS
from pipelines.audit.settings_checks import OF_SETTINGS, clock, disk, silent, store
from pipelines.audit.view import Finding, Verdict, View
from pipelines.batches.state import opened, snapshot
from pipelines.batches.waiting import unclaimed
from pipelines.deployment.campaigns import Epochs, read_epochs
from pipelines.deployment.settings import Deployment, Party
from pipelines.files.storage_errors import told

_SOON = timedelta(days=14)
_ROLE: dict[Party, Literal["analyzer", "aux_server"]] = {"analyzer": "analyzer", "aux-server": "aux_server"}


def examine(deployment: Deployment, now: datetime | None = None) -> list[Finding]:
    """Return what every check found; a check that cannot be made is bad itself."""
    return list(_examined(deployment, now or datetime.now(timezone.utc)))


def _examined(deployment: Deployment, now: datetime) -> Iterator[Finding]:
    campaigns: list[Epochs] = []
    faults: dict[str, str] = {}
    try:
        campaigns, faults = read_epochs(deployment.campaigns)
    except (HushcountError, OSError) as error:
        yield Finding("campaigns", "bad", told(error))
    for name, fault in faults.items():
        yield Finding(f"campaign {name}", "bad", fault)
    for epochs in campaigns:
        for check in _OF_FILES:
            yield from _tried(
                f"{check.__name__.strip('_').replace('_', ' ')} of {epochs.campaign}", check(deployment, epochs, now)
            )
    for name, of_setting in OF_SETTINGS.items():
        yield from _tried(name, of_setting(deployment, campaigns))
    yield from _tried("store", store(deployment))
    yield from _tried("state", _of_state(deployment, campaigns, faults, now))


def _of_state(
    deployment: Deployment, campaigns: list[Epochs], faults: dict[str, str], now: datetime
) -> Iterator[Finding]:
    with opened(deployment.state) as database, snapshot(database) as state:
        yield from _tried("collectors", silent(deployment, state))
        yield from _tried("disk", disk(deployment, state))
        yield from _tried("segments", _unclaimed(deployment, {epochs.campaign for epochs in campaigns} | faults.keys()))
        yield from _tried("clock", clock(deployment, state, now))
        for epochs in campaigns:
            view = View(deployment, epochs, state, now)
            for check in OF_REPORTS:
                yield from _tried(f"{check.__name__.replace('_', ' ')} of {epochs.campaign}", check(view))


def _unclaimed(deployment: Deployment, known: set[str]) -> Iterator[Finding]:
    """Say which segments are of campaigns without a file; where no campaign could be read, that is not known."""
    for name, says in unclaimed(deployment, known).items() if known else ():
        yield Finding(f"segments of {name}", "warning", says)


def _tried(name: str, check: Iterator[Finding]) -> Iterator[Finding]:
    """Yield what a check finds; the name is the finding's where the check cannot be made."""
    try:
        yield from check
    except (HushcountError, OSError) as error:
        yield Finding(name, "bad", told(error))


def _epoch(deployment: Deployment, epochs: Epochs, now: datetime) -> Iterator[Finding]:
    """Say which epoch is collected now."""
    name, current = f"epoch of {epochs.campaign}", epochs.collection.current(now)
    if current is None:
        yield Finding(name, "bad", "none is current", f"hushcount epoch publish --config {deployment.path}")
    else:
        yield Finding(name, "good", f"{current.epoch} since {current.begins.isoformat()}")


def _keys(deployment: Deployment, epochs: Epochs, now: datetime) -> Iterator[Finding]:
    """Check the dictionary and the keys of every epoch whose reports are still accepted."""
    current = epochs.collection.current(now)
    for (number, _), campaign in epochs.campaigns.items():
        if not epochs.collection.accepts(number, now):
            continue
        file = f"epoch {number} of {campaign.id}"
        try:
            campaign.read_dictionary()
        except HushcountError as error:
            yield Finding(f"dictionary of {file}", "bad", str(error))
        if current is not None and current.epoch == number:
            yield from _public_keys(campaign, file, now)
        yield from _private_keys(deployment, campaign, file)


def _public_keys(campaign: Campaign, file: str, now: datetime) -> Iterator[Finding]:
    for role, listed in (("analyzer", campaign.keys.analyzer), ("aux_server", campaign.keys.aux_server)):
        for key in listed:
            left = key.not_after - now
            verdict: Verdict = "good" if left > _SOON else "warning" if left > timedelta() else "bad"
            cure = "hushcount keys rotate, then publish an epoch with the new key"
            yield Finding(f"{role} key of {file}", verdict, f"valid until {key.not_after.isoformat()}", cure)


def _private_keys(deployment: Deployment, campaign: Campaign, file: str) -> Iterator[Finding]:
    for party in deployment.file.parties:
        if party in _ROLE and (listed := getattr(campaign.keys, _ROLE[party])):
            # Not at the top: the shuffler's doctor has no such package.
            from keys.store import campaign_key

            name = f"private {party} key of {file}"
            try:
                campaign_key(deployment.keys, _ROLE[party], listed)
                yield Finding(name, "good", "opens")
            except HushcountError as error:
                yield Finding(name, "bad", str(error))


def _signature(_deployment: Deployment, epochs: Epochs, _now: datetime) -> Iterator[Finding]:
    """Check that clients that verify campaign files can take the newest."""
    parts = epochs.collection.epochs
    signed = [signature_path(epochs.directory / part.file).exists() for part in parts]
    if len(signed) > 1 and signed[-2] and not signed[-1]:
        yield Finding(
            f"signature of {epochs.campaign}",
            "bad",
            f"epoch {parts[-1].epoch} has none, the one before has",
            "hushcount campaign sign it, and replace collection.json by a copy of itself, so that collectors read it",
        )


_OF_FILES = (_epoch, _keys, _signature, next_epoch, year)
"""In the order in which they are shown."""
