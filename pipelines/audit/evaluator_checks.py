"""Checks of oblivious campaigns: where the evaluator runs, who verifies discovered values, when keys are destroyed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from hushcount.campaigns.campaign import Campaign
from hushcount.collection.epochs import EpochPart
from pipelines.audit.view import Finding, View
from pipelines.deployment.campaigns import Epochs
from pipelines.handover.hops import outputs
from pipelines.handover.paths import Batch

_SLACK = timedelta(days=7)
"""If a key still exists after the time to destroy it, the finding is a warning for this long, and then bad."""


def lacks_evaluator(view: View) -> str | None:
    """Return a sentence if the analyzer runs here without an evaluator to verify discovered values, else None."""
    file, campaigns = view.deployment.file, view.epochs.campaigns.values()
    epochs = [campaign.epoch for campaign in campaigns if campaign.is_oblivious]
    if not epochs or "analyzer" not in file.parties or file.analyzer.evaluator is not None:
        return None
    return f"epoch {epochs[-1]} is oblivious, but no evaluator is set: no discovered value can be verified"


def evaluator(view: View) -> Iterator[Finding]:
    """Ask the evaluator of the present epoch to evaluate random bytes, as the analyzer does before it opens a batch."""
    name, lacks = f"evaluator of {view.campaign}", lacks_evaluator(view)
    if lacks is not None:
        yield Finding(name, "bad", lacks, "set evaluator under [analyzer] to its address or its key directory")
        return
    current = view.epochs.collection.current(view.now)
    campaign = next((one for part, one in _files(view.epochs) if part == current), None)
    if "analyzer" not in view.deployment.file.parties or campaign is None or not campaign.is_oblivious:
        return
    # Imported only here: evaluator_address sends HTTP requests and reads keys, for which parties may lack the packages.
    from pipelines.handover.evaluator_address import evaluator_here, namer

    if (found := namer(campaign, evaluator_here(view.deployment))) is not None:
        found.require(campaign)
        yield Finding(name, "good", f"answers with key {campaign.keys.evaluator[0].id}")


def evaluator_apart(view: View) -> Iterator[Finding]:
    """Warn if evaluator and auxiliary server run together in a deployment with an oblivious campaign."""
    file = view.deployment.file
    if file.evaluator is None or "aux-server" not in file.parties:
        return
    names = [one.campaign for one in view.campaigns if any(each.is_oblivious for each in one.campaigns.values())]
    if names:
        says = f"the evaluator of {', '.join(names)} and the auxiliary server run here: together they test any guess"
        cure = 'let somebody else run the auxiliary server, and set parties = ["shuffler", "analyzer"] here'
        yield Finding("evaluator apart", "warning", says, cure)


def evaluator_keys(view: View) -> Iterator[Finding]:
    """Say which evaluator keys are here, and which to destroy, because with a key its holder can test guesses."""
    for part, campaign in _files(view.epochs):
        for key in campaign.keys.evaluator:
            directory = _directory_of(view, key.id)
            if directory is not None:
                name = f"end of the evaluator key of epoch {part.epoch} of {view.campaign}"
                yield _end(view, name, part, directory, key.id)


def _files(epochs: Epochs) -> Iterator[tuple[EpochPart, Campaign]]:
    return zip(epochs.collection.epochs, epochs.campaigns.values(), strict=True)


def _end(view: View, name: str, part: EpochPart, directory: Path, id: str) -> Finding:
    """Say when to destroy a key: after all reports of its epoch are opened and all discovered values are verified.

    No other campaign needs the key, because two campaign files with the same evaluator key are never published.
    """
    if part.grace_ends is None:
        return Finding(name, "good", f"key {id} is in use")
    # At the time `due`, the last reports of the epoch have joined a batch.
    due = part.grace_ends + view.deployment.windows.tiling.longest + view.deployment.windows.grace
    if view.now < due:
        return Finding(name, "good", f"key {id} is needed until {due.isoformat()}")
    if left := [batch.name for batch in _unverified(view) if batch.epoch == part.epoch]:
        says = f"key {id} could be destroyed since {due.isoformat()}, but job discover has not finished {left[0]}"
        return Finding(name, "warning", says, "read the messages of hushcount run about this batch")
    cure = f"hushcount keys retire --keys {directory} --id {id} --early"
    if "analyzer" not in view.deployment.file.parties:
        cure = f"once the analyzer, which runs elsewhere, has finished job discover for all batches, run {cure}"
    overdue = view.now >= due + _SLACK
    says = f"nothing has needed key {id} since {due.isoformat()}, and until it is destroyed guesses can be tested"
    return Finding(name, "bad" if overdue else "warning", says, cure)


def _unverified(view: View) -> list[Batch]:
    """Return the batches whose discovery the analyzer here has not finished."""
    if "analyzer" not in view.deployment.file.parties:
        return []
    made = view.fold.made_batches
    if not view.deployment.shuffles:
        made = [batch for batch, _ in outputs(view.deployment, "shuffled", view.campaign)]
    return [batch for batch in made if "discover" not in view.fold.hops_of(batch.name)]


def _directory_of(view: View, id: str) -> Path | None:
    """Return the key directory here that has the evaluator's key `id`; None: the key is elsewhere, or destroyed."""
    file, base = view.deployment.file, view.deployment.base
    named = [] if file.evaluator is None else [base / file.evaluator.keys]
    if file.analyzer.evaluator is not None:
        named.append(base / file.analyzer.evaluator)
    return next((directory for directory in named if (directory / f"evaluator-{id}.key").exists()), None)
