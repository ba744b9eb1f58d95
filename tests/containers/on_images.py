"""Each image runs its party's jobs, restricted as in production, and holds no more than it must."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.containers import layers
from tests.containers.build import PARTIES, size
from tests.containers.build import images as recipes
from tests.containers.engine import docker
from tests.deploy.test_images import HELD
from tests.support.jobs import Chain

RESTRICTED = (
    "--rm",
    "--read-only",
    "--network=none",
    "--cap-drop=ALL",
    "--security-opt=no-new-privileges",
    "--tmpfs=/tmp",
)
MOST_MIB = {
    "shuffler": 450,
    "shuffler-signing": 450,
    "evaluator": 450,
    "issuer": 450,
    "aux-server": 700,
    "analyzer": 700,
}
"""deploy/README.md says why the last two are larger."""
JOBS = {
    "shuffler": ("job", "shuffle", "--input", "encoded"),
    "shuffler-signing": ("job", "shuffle", "--sign-with", "/in/signing-keys/shuffler", "--input", "encoded"),
    "aux-server": ("job", "discover", "--party", "aux-server", "--keys", "/in/keys", "--input", "shuffled"),
    "analyzer": ("job", "analyze", "--keys", "/in/keys", "--input", "shuffled"),
}
EVERY_MODULE = """
import importlib, pkgutil, sys
for name in sys.argv[1:]:
    for module in pkgutil.walk_packages(importlib.import_module(name).__path__, name + "."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
"""
LATE = """
from hushcount.privacy.composition import Loss
from hushcount.privacy.joint import joint_epsilon
from hushcount.questions.power import *
from hushcount.designs.sources import *
import scipy.optimize, scipy.special, scipy.stats
assert 2.9 < joint_epsilon([Loss(1.0, 1e-9)] * 3, 1e-6) < 3.1
import numpy, numba
assert numba.njit(lambda n: n + 1)(1) == 2
from keys.opening_engines import _made
from sealed_lanes import Lanes
why = _made()
assert isinstance(why, Lanes) or "compiler" not in why, why
import pyarrow, pyarrow.compute, pyarrow.csv, pyarrow.fs, pyarrow.parquet
from apache_beam.io import parquetio
assert parquetio.pq is not None
"""
UNCOMPILED = """
import os, sys, runpy
try:
    runpy.run_module(sys.argv.pop(1), run_name="__main__")
except SystemExit:
    pass
for module in list(sys.modules.values()):
    path = getattr(module, "__file__", None) or ""
    cached = getattr(getattr(module, "__spec__", None), "cached", None)
    if path.startswith("/opt/venv") and cached and not os.path.exists(cached):
        print(module.__name__)
"""


def run(tag: str, entrypoint: str, *arguments: object) -> str:
    return docker("run", *RESTRICTED, f"--entrypoint={entrypoint}", tag, *arguments).stdout


@pytest.mark.parametrize("party", JOBS)
def test_an_image_runs_its_job_without_network_on_a_root_that_cannot_be_written(
    images: dict[str, str], party: str, chain: Chain, tmp_path_factory: pytest.TempPathFactory
) -> None:
    made = tmp_path_factory.mktemp("made")
    *job, source = JOBS[party]
    # Whoever runs the tests owns the keys, which are for their owner alone.
    owner = chain.campaign_path.stat()
    mounted = (f"--volume={chain.campaign_path.parent}:/in:ro", f"--volume={made}:/made")
    arguments = [*job, f"/in/{chain.path(source).name}", "--campaign", f"/in/{chain.campaign_path.name}"]
    command = (*mounted, images[party], *arguments, "--out", "/made/out")
    docker("run", *RESTRICTED, f"--user={owner.st_uid}:{owner.st_gid}", *command)
    assert json.loads((made / "out" / "summary.json").read_text())["campaign"] == chain.campaign.id
    assert (made / "out" / "summary.json.sig").exists() == (party == "shuffler-signing")


@pytest.mark.parametrize(
    ("party", "serve", "make", "made"),
    [
        ("evaluator", "evaluate", ("keys", "new", "--role", "evaluator"), "active"),
        ("issuer", "issue", ("keys", "passes", "--campaign-id", "pages", "--days", "1"), "pages.passes.json"),
    ],
)
def test_a_server_reads_its_deployment_and_makes_its_keys(
    images: dict[str, str], party: str, serve: str, make: tuple[str, ...], made: str
) -> None:
    """What it answers is shown by the deployment; here that its packages suffice, and no job is offered."""
    missing = docker("run", *RESTRICTED, images[party], serve, "--config", "missing.toml", check=False)
    assert missing.returncode == 2
    assert "missing.toml" in missing.stderr
    keys = "/tmp/keys"  # noqa: S108  # in the container
    assert made in docker("run", *RESTRICTED, images[party], *make, "--out", keys).stdout
    analyze = docker("run", *RESTRICTED, images[party], "analyze", check=False)
    assert analyze.returncode == 2
    assert "no such command" in analyze.stderr.lower()


@pytest.mark.parametrize("party", PARTIES)
def test_nothing_that_an_image_imports_was_taken_out_of_it(images: dict[str, str], party: str) -> None:
    packages = sorted(HELD[party])
    if party in ("analyzer", "aux-server"):
        run(images[party], "python", "-W", "ignore", "-c", EVERY_MODULE, *packages)
        run(images[party], "python", "-W", "ignore", "-c", LATE)
    else:
        # The others hold jobs too, for which these images have no packages.
        own = ("keys", party) if party in ("evaluator", "issuer") else ("shuffler",)
        run(images[party], "python", "-W", "ignore", "-c", EVERY_MODULE, "service", *own)


@pytest.mark.parametrize(
    ("party", "command"),
    [
        ("shuffler", ("shuffler_command", "run")),
        ("shuffler", ("shuffler_command", "collect")),
        ("evaluator", ("evaluator_command", "evaluate")),
        ("issuer", ("issuer_command", "issue")),
        ("analyzer", ("pipelines", "run")),
    ],
)
def test_a_start_compiles_nothing(images: dict[str, str], party: str, command: tuple[str, str]) -> None:
    """Bytecode is kept for what a start loads; the rest is compiled when it is first used."""
    module, name = command
    listed = run(images[party], "python", "-W", "ignore", "-c", UNCOMPILED, module, name, "--config", "missing.toml")
    assert listed.split() == []


@pytest.mark.parametrize("party", PARTIES)
def test_an_image_is_nobodys_root_and_holds_its_packages_alone(images: dict[str, str], party: str) -> None:
    config = json.loads(docker("image", "inspect", images[party]).stdout)[0]["Config"]
    assert config["User"] == "10001:10001"
    listed = set(run(images[party], "ls", "/opt/hushcount").split())
    scripts = {name for name in listed if name.endswith(".py")}
    assert listed - scripts - {"__pycache__"} == HELD[party]
    hands_on = {"hand_on.py"} if party in ("shuffler", "shuffler-signing", "aux-server") else set()
    own = {name for name in scripts if name.endswith("_command.py")}
    assert scripts == hands_on | own
    assert own == ({f"{party.partition('-')[0]}_command.py"} if party not in ("aux-server", "analyzer") else set())


@pytest.mark.parametrize("party", MOST_MIB)
def test_an_image_is_not_larger_than_the_documentation_says(images: dict[str, str], party: str) -> None:
    assert size(images[party]) <= MOST_MIB[party] << 20


@pytest.mark.long
@pytest.mark.parametrize("party", ["shuffler", "aux-server", "analyzer"])
def test_flinks_workers_start_from_a_partys_image(flink_images: dict[str, str], party: str) -> None:
    """The pool answers at its port, and the program that it starts workers with is there and can be executed."""
    started = docker("run", "--detach", *RESTRICTED, flink_images[f"{party}-worker"]).stdout.strip()
    try:
        ask = (
            "import socket, time\nfor _ in range(120):\n  try: socket.create_connection(('localhost', 50000)); break\n"
        )
        ask += "  except OSError: time.sleep(1)\nelse: raise SystemExit('no pool')"
        docker("exec", started, "python", "-c", ask)
        docker("exec", started, "test", "-x", "/opt/hushcount/worker.py")
    finally:
        docker("rm", "--force", started)


@pytest.mark.long
def test_the_job_server_prints_its_options(flink_images: dict[str, str]) -> None:
    told = docker("run", *RESTRICTED, flink_images["job-server"], check=False)
    assert "--flink-master" in told.stdout + told.stderr


@pytest.mark.long
def test_dataflows_image_has_beams_boot_and_what_it_asks_for(dataflow_images: dict[str, str]) -> None:
    """boot ends without a worker's id; it would ask pip for Beam. The launcher is a stand-in or Google's."""
    image = dataflow_images["dataflow"]
    told = docker("run", *RESTRICTED, image, check=False)
    assert told.returncode != 0
    assert "id" in told.stdout + told.stderr
    shown = run(image, "python", "-m", "pip", "show", "apache-beam")
    assert "Version: " in shown
    run(image, "test", "-x", "/opt/google/dataflow/python_template_launcher")
    helped = run(image, "python", "/opt/hushcount/launch.py", "--help")
    assert "finish" in helped


@pytest.mark.long
def test_no_layer_holds_a_secret(flink_images: dict[str, str]) -> None:
    assert layers.search([image.tag for image in recipes("parties", "flink")]) == []


@pytest.fixture
def planted(tmp_path: Path) -> Iterator[str]:
    """An image on nothing with secrets in its first layer, one of which its second replaces."""
    tag = "hushcount-planted:test"
    key = "-----BEGIN PRIVATE KEY-----\n" + "A" * 64 + "\n-----END PRIVATE KEY-----\n"
    ours = json.dumps({"role": "analyzer", "id": "00ff", "secret": "AAAA"})
    files = {
        "etc/tls.pem": key,
        "opt/hushcount/keys/notes.txt": "stray",
        "root/mine.key": "a name",
        "tmp/role": ours,
        "srv/deep/token": "x ghp_" + "a" * 36,
        "usr/plain": "-----BEGIN PRIVATE KEY----- is how a key begins, AKIAIOSFODNN7EXAMPLE is none",
    }
    with tarfile.open(tmp_path / "files.tar", "w") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    (tmp_path / "Dockerfile").write_text("FROM scratch\nADD files.tar /\nCOPY Dockerfile /etc/tls.pem\n")
    docker("build", "--quiet", "--tag", tag, tmp_path)
    yield tag
    docker("image", "rm", "--force", tag)


def test_a_planted_secret_is_found(planted: str) -> None:
    found = sorted(line.split(": ")[1] for line in layers.search([planted]))
    assert found == ["etc/tls.pem", "opt/hushcount/keys/notes.txt", "root/mine.key", "srv/deep/token", "tmp/role"]
    # Found again: what holds a secret is not remembered as searched.
    assert len(layers.search([planted])) == len(found)
