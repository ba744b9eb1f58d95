"""How much evaluators were asked about a campaign, as their manifests say."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from evaluator.manifests import read_evaluation_manifest
from hushcount.errors import FormatError
from pipelines.audit.view import View
from pipelines.files import storage


@dataclass(frozen=True)
class Evaluations:
    """What evaluators were asked about one campaign in its newest windows with any evaluation.

    Attributes:
        windows: their names, oldest first.
        clients: evaluations for clients.
        verifier: evaluations for the analyzer.
        refused: requests of both that were refused, by reason.
        unreadable: names of manifests that cannot be read; they are not counted.
    """

    windows: tuple[str, ...]
    clients: int
    verifier: int
    refused: dict[str, int]
    unreadable: tuple[str, ...]


def evaluations_of(view: View, last: int) -> Evaluations | None:
    """Return what was asked about a campaign in so many windows; None: no evaluator wrote of it here."""
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
