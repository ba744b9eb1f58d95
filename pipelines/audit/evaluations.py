"""Count the evaluations that were made for a campaign, from the evaluators' manifests."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from evaluator.manifests import read_evaluation_manifest
from hushcount.errors import FormatError
from pipelines.audit.view import View
from pipelines.files import storage


@dataclass(frozen=True)
class Evaluations:
    """The evaluations for one campaign in the newest windows for which an evaluator wrote a manifest.

    Attributes:
        windows: names of these windows, oldest first.
        clients: number of evaluations for clients.
        verifier: number of evaluations for the analyzer.
        refused: number of refused requests of clients and of the analyzer, by reason.
        unreadable: names of manifests that cannot be read, so that their evaluations are not counted.
    """

    windows: tuple[str, ...]
    clients: int
    verifier: int
    refused: dict[str, int]
    unreadable: tuple[str, ...]


def evaluations_of(view: View, last: int) -> Evaluations | None:
    """Return the evaluations in a campaign's `last` newest windows; None: the store has no evaluation manifest."""
    home = view.deployment.folder("evaluations", view.campaign)
    listed = [path for path, _ in storage.list_tree(home, "*/*/*.json")]
    windows = tuple(sorted({path.split("/")[-2] for path in listed})[-last:])
    asked: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    unreadable = []
    for path in (path for path in listed if path.split("/")[-2] in windows):
        try:
            manifest = read_evaluation_manifest(storage.read_bytes(path), path)
        except FormatError:
            unreadable.append(storage.relative(path, home))
            continue
        asked.update(clients=manifest.clients.evaluations, verifier=manifest.verifier.evaluations)
        refused.update(manifest.clients.refused)
        refused.update(manifest.verifier.refused)
    if not windows:
        return None
    return Evaluations(windows, asked["clients"], asked["verifier"], dict(refused), tuple(unreadable))
