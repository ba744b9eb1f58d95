"""The checks of an oblivious campaign: who verifies what is found, and when an evaluator's key is to be destroyed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from hushcount.collection.epochs import EpochPart
from pipelines.audit.view import Finding, View
from pipelines.batches.rebuild import outputs
from pipelines.batches.rows import hops_done, made_batches
from pipelines.handover.names import Batch

_SLACK = timedelta(days=7)
"""So long after it is due a key may be destroyed before it counts as forgotten."""


def lacks_evaluator(view: View) -> str | None:
    """Return a sentence if the analyzer runs here and nobody is named that can verify what it finds, else None."""
    file, campaigns = view.deployment.file, view.epochs.campaigns.values()
    epochs = [campaign.epoch for campaign in campaigns if campaign.is_oblivious]
    if not epochs or "analyzer" not in file.parties or file.analyzer.evaluator is not None:
        return None
    return f"epoch {epochs[-1]} is oblivious, and no evaluator is named: no found value can be verified"


def evaluator(view: View) -> Iterator[Finding]:
    """Ask the evaluator of the present epoch about random bytes, as the analyzer does before it opens a batch."""
    name, lacks = f"evaluator of {view.campaign}", lacks_evaluator(view)
    if lacks is not None:
        yield Finding(name, "bad", lacks, "set evaluator under [analyzer], its address or its key directory")
        return
    current = view.epochs.collection.current(view.now)
    files = [one for (number, _), one in view.epochs.campaigns.items() if current and number == current.epoch]
    if "analyzer" not in view.deployment.file.parties or not any(one.is_oblivious for one in files):
        return
    # Not at the top: it asks over HTTP, and reads keys.
    from pipelines.handover.evaluator import evaluator_here, namer

    for campaign in files:
        if (found := namer(campaign, evaluator_here(view.deployment))) is not None:
            found.require(campaign)
            yield Finding(name, "good", f"answers with key {campaign.keys.evaluator[0].id}")


def evaluator_keys(view: View) -> Iterator[Finding]:
    """Say which keys of the evaluator are here, and which of them should be destroyed: a guess needs one."""
    for part in view.epochs.collection.epochs:
        (campaign,) = (one for (number, _), one in view.epochs.campaigns.items() if number == part.epoch)
        for key in campaign.keys.evaluator:
            directory = _directory_of(view, key.id)
            if directory is not None:
                name = f"end of the evaluator key of epoch {part.epoch} of {view.campaign}"
                yield _due(view, name, part, directory, key.id)


def _due(view: View, name: str, part: EpochPart, directory: Path, id: str) -> Finding:
    """Say when a key is to be destroyed: when its last reports have joined a batch, and what this found is verified."""
    if part.grace_ends is None:
        return Finding(name, "good", f"key {id} is in use")
    windows = view.deployment.windows
    due = part.grace_ends + windows.length + windows.grace
    if view.now < due:
        return Finding(name, "good", f"key {id} is needed until {due.isoformat()}")
    left = [batch.name for batch in _unverified(view) if batch.epoch == part.epoch]
    if left:
        says = f"key {id} would be due since {due.isoformat()}, but batch {left[0]} is not discovered yet"
        return Finding(name, "warning", says, "see what hushcount run says of it")
    cure = f"hushcount keys retire --keys {directory} --id {id} --early"
    if "analyzer" not in view.deployment.file.parties:
        cure = f"once the analyzer, elsewhere, has discovered all batches: {cure}"
    overdue = view.now >= due + _SLACK
    says = f"nothing has needed key {id} since {due.isoformat()}, and as long as it is there guesses can be tested"
    return Finding(name, "bad" if overdue else "warning", says, cure)


def _unverified(view: View) -> list[Batch]:
    """Return the batches whose discovery the analyzer here has not finished."""
    if "analyzer" not in view.deployment.file.parties:
        return []
    made = made_batches(view.state, view.campaign)
    if not view.shuffles:
        made = [batch for batch, _ in outputs(view.deployment, "shuffled", view.campaign)]
    done = hops_done(view.state, view.campaign)
    return [batch for batch in made if "discover" not in done.get(batch.name, set())]


def _directory_of(view: View, id: str) -> Path | None:
    """Return the key directory here that has this key of the evaluator; None: it is elsewhere, or destroyed."""
    file, base = view.deployment.file, view.deployment.base
    named = [] if file.evaluator is None else [base / file.evaluator.keys]
    if file.analyzer.evaluator is not None:
        named.append(base / file.analyzer.evaluator)
    return next((directory for directory in named if (directory / f"evaluator-{id}.key").exists()), None)
