"""What the tests of deploy/ share: one small collection, and the files that are tested."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest

from hushcount.campaigns.campaign import Campaign
from keys.directories import create
from keys.roles import SigningRole
from tests.support.collecting import collect
from tests.support.jobs import Chain, new_campaign, new_keys, write_lines
from tests.support.noise import NoiseSite
from tests.support.site import Site, values
from tests.support.stub_store import StubStore

SIGNERS: Mapping[str, SigningRole] = {
    "shuffler": "shuffler",
    "aux-server": "aux_signer",
    "analyzer": "analyzer_signer",
}
"""As whom each party signs what it hands on and states."""
ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
TOOLS = ROOT / "build" / "tools"
RECIPES = [*sorted((DEPLOY / "images").glob("*.Dockerfile")), DEPLOY / "dataflow" / "Dockerfile"]


@pytest.fixture(scope="package")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Chain:
    """A collection that is encoded, shuffled and released, signed by each party. Nobody writes to these files."""
    root = tmp_path_factory.mktemp("collection")
    keys = new_keys(root / "keys")
    signing_keys(root)
    write_lines(root / "values.txt", ["alpha"] * 60 + ["unlisted"] * 60)
    items = write_lines(root / "items.txt", ["alpha", "beta"])
    made = Chain(new_campaign(root / "graph.json", keys, dictionary=items, discovery=2.0), keys)
    made.encode(root / "values.txt")
    made.shuffle("--sign-with", root / "signing-keys" / "shuffler")
    made.discover("--party", "aux-server", "--sign-with", root / "signing-keys" / "aux-server", out="released")
    return made


def signing_keys(root: Path) -> None:
    for party, role in SIGNERS.items():
        create(root / "signing-keys" / party, 365, [role])


@contextmanager
def script(path: Path) -> Iterator[ModuleType]:
    """Yield a script of an image, which is no module of the package, as one."""
    # As Python does for a script.
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up.
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[path.stem]
    sys.path.remove(str(path.parent))


@pytest.fixture
def hand_on() -> Iterator[ModuleType]:
    with script(DEPLOY / "hand_on.py") as module:
        yield module


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """What a collector left, the redacted campaigns beside the whole ones, and the keys of those who sign."""
    return collected(Site(tmp_path, discovery=True))


@pytest.fixture
def noise_site(tmp_path: Path) -> Site:
    """The same, of a campaign with noise of the mixes."""
    return collected(NoiseSite(tmp_path, discovery=True))


def collected(site: Site) -> Site:
    signing_keys(site.root)
    collect(site.store, site.campaign, values(300), day=0)
    folder = site.root / "redacted-campaigns" / "words"
    folder.mkdir(parents=True)
    whole = Campaign.read(site.campaign)
    whole.redacted().write(folder / site.campaign.name)
    assert whole.dictionary is not None
    for name in ("collection.json", whole.dictionary.path):
        (folder / name).write_bytes((site.campaign.parent / name).read_bytes())
    return site


@pytest.fixture
def store() -> Iterator[type[StubStore]]:
    """An object store, empty before and after."""
    StubStore.clear()
    yield StubStore
    StubStore.clear()


def compose_command() -> list[str]:
    """Return how docker compose is called here; skip, with the reason, where it is not installed."""
    tool = shutil.which("docker-compose") or shutil.which("docker-compose", path=TOOLS)
    if tool is not None:
        return [tool]
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "compose", "version"], capture_output=True, check=False).returncode:  # noqa: S603
        pytest.skip("docker compose is not installed: compose.yaml was NOT held against its own reader")
    return [docker, "compose"]


def kubeconform_command() -> list[str]:
    """Return how manifests are held against Kubernetes' own schemas; skip, with the reason, where these are missing.

    A FlinkDeployment is not Kubernetes' own.
    """
    tool, schemas = shutil.which("kubeconform") or shutil.which("kubeconform", path=TOOLS), TOOLS / "kubernetes-schemas"
    if tool is None or not schemas.is_dir():
        pytest.skip("kubeconform or its schemas are not there: manifests were NOT held against them; make deploy-tools")
    location = f"{schemas}/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json"
    return [tool, "-strict", "-skip", "FlinkDeployment", "-schema-location", location]


def images_python() -> str:
    """Return the version of Python in the images, as 3.13."""
    bases = (re.findall(r"^ARG BASE=python:(\d+\.\d+)\.", path.read_text(), re.MULTILINE) for path in RECIPES)
    (version,) = {version for found in bases for version in found}
    return str(version)
