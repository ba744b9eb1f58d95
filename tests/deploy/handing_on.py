"""One batch that was shuffled, and the parties' deployments, for the tests of hand_on.py."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from pipelines.deployment.settings import FOLDERS, PARTIES, SAID, Deployment
from pipelines.outputs.received_summary import folder_of
from pipelines.outputs.summary import RUN_FOLDER
from pipelines.schedule.run import run
from tests.deploy.conftest import DEPLOY
from tests.deploy.test_schedules import mounts, services
from tests.support.clocks import stopped
from tests.support.collecting import window_name
from tests.support.site import Site, at

GONE = f"{window_name(0)}-000001-{'0' * 16}"
"""A batch of which the shuffler has nothing any more."""


def deployment(root: Path, party: str, campaigns: str, **paths: str) -> Deployment:
    """Return a party's deployment file of compose.yaml with these folders, and a store, at places of this machine."""
    given = Deployment.read(DEPLOY / "compose" / f"{party}.toml")
    return replace(
        given,
        path=root / "deployment.toml",
        store=str(root / f"{party}-store"),
        campaigns=root / campaigns,
        keys=root / "keys",
        ledger=None,
        sign_with=None if given.sign_with is None else root / "signing-keys" / party,
        shuffler_keys=_trusted(root, given.shuffler_keys),
        aux_server_keys=_trusted(root, given.aux_server_keys),
        analyzer_keys=_trusted(root, given.analyzer_keys),
        file=given.file.model_copy(update={"paths": paths}),
    )


def _trusted(root: Path, path: Path | None) -> Path | None:
    """Return what is mounted at /trusted/PARTY/public.json: what that party's key directory lists."""
    return None if path is None else root / "signing-keys" / path.parent.name / "public.json"


def in_compose(root: Path, service: str) -> Deployment:
    """Return the deployment of a service of compose.yaml, whose volumes lie in `root/volumes`."""
    party = service.removesuffix("-hand-on")
    given = Deployment.read(DEPLOY / "compose" / f"{party}.toml")
    names = [*FOLDERS, *(f"{folder}/{one}" for folder in SAID for one in PARTIES)]
    paths = {name: mounted(root, service, given.folder(*name.split("/"))) for name in names}
    return deployment(root, party, "campaigns" if party == "analyzer" else "redacted-campaigns", **paths)


def mounted(root: Path, service: str, path: str) -> str:
    """Return where a path of a service's container lies; without a volume, where a test sees that it was written."""
    found = mounts(services()[service])
    for target in sorted(found, key=len, reverse=True):
        if f"{path}/".startswith(f"{target}/"):
            return f"{root / 'volumes' / found[target][0]}{path.removeprefix(target)}"
    return f"{root / 'no-volume' / service}{path}"


def of_shuffler(root: Path) -> Deployment:
    """Return the shuffler's deployment, whose batches lie in `own`."""
    paths = {"segments": str(root / "store" / "segments"), "shuffled": str(root / "own")}
    return deployment(root, "shuffler", "redacted-campaigns", **paths)


def shuffled(site: Site) -> tuple[Deployment, Path]:
    """Return the shuffler's deployment after it shuffled one batch, and where that lies."""
    shuffler = of_shuffler(site.root)
    assert run(shuffler, clock=stopped(at(1.1))).problems == []
    (batch,) = (site.root / "own" / "words").iterdir()
    return shuffler, batch


def hands(module: ModuleType, *texts: str) -> list[object]:
    return [module._parsed(text) for text in texts]


def inside(batch: Path) -> Path:
    """Return the folder of a batch in which its files are."""
    return Path(folder_of(str(batch)))


def files(root: Path) -> set[str]:
    """Return the folders of batches, and the files beside them, that are anywhere below a directory."""
    found = (path.relative_to(root).parts[2:] for path in root.rglob("*"))
    names = (parts[1:] if parts and re.fullmatch(RUN_FOLDER, parts[0]) else parts for parts in found)
    return {parts[0] for parts in names if parts}
