"""deploy/second-party/README.md: an auxiliary server of another organisation, from its keys to its leaving."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from hushcount import __version__
from tests.containers.acts import paused
from tests.containers.deployment import DEPLOY, ITEMS, Site, documented, give_to_containers, machine
from tests.containers.deployment import paste as pasted
from tests.containers.engine import docker
from tests.support.jobs import write_lines
from tests.support.ports import free_port

PAGE = DEPLOY / "second-party" / "README.md"
IMAGE = f"hushcount-analyzer:{__version__}"
PROBES = (Path(__file__).parent / "compose" / "probes.py").read_text(encoding="utf-8")
WINDOW = 20.0
UNLISTED = "nobody listed this"
SENDERS = 120
"""Of the unlisted value: 25 have an even chance, 34 have 95 percent, so it is missed with probability 1e-10."""
VALUES = [UNLISTED] * SENDERS + ITEMS * 2
PATIENCE = 600.0


@dataclass
class Apart:
    """Two organisations on one engine: they share nothing but the folder of the exchange."""

    operator: Site
    second: Site

    def paste(self, holding: str, **names: str) -> str:
        """Run the page's block at the second party, in its directory."""
        commands = documented(holding, PAGE)
        for name, value in names.items():
            commands = commands.replace(f" {name}\n", f" {value}\n")
        return typed(commands, self.second.directory)

    def post(self) -> None:
        """Let clients report into one window."""
        while time.time() % WINDOW > WINDOW / 2:
            time.sleep(0.1)
        self.operator.post(VALUES)

    def counted(self, hop: str, stream: str) -> int:
        """Return how many reports a hop of the analyzer counted."""
        return self.operator.numbers("analyzer")[hop, stream]

    def new(self) -> set[str]:
        rows = json.loads(self.operator.hushcount("analyzer", "ask", "new", "--json").stdout)["rows"]
        return {row["item"] for row in rows}

    def key(self) -> dict[str, str]:
        """Return the auxiliary server's first key, which only its own containers can read."""
        id = json.loads((self.second.directory / "hand-over" / "aux-server.json").read_text())["keys"][0]["id"]
        read = ("run", "--rm", "--no-TTY", "--entrypoint=cat", "hushcount", f"/keys/aux_server-{id}.key")
        found: dict[str, str] = json.loads(self.second.docker_compose(*read).stdout)
        return found


def typed(commands: str, directory: Path, **variables: str) -> str:
    """Run a block of commands of docker alone as it stands; return what it prints."""
    ran = subprocess.run(  # noqa: S603  # the page's own lines
        ["sh", "-ec", commands],  # noqa: S607
        cwd=directory, env={**os.environ, **variables}, capture_output=True, text=True, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert ran.returncode == 0, f"{commands}\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout


def settle(directory: Path, variables: Mapping[str, str]) -> None:
    """Name what differs from machine to machine, and shorten the windows."""
    with (directory / ".env").open("a") as settings:
        settings.writelines(f"{name}={value}\n" for name, value in {**variables, "EVERY": "2"}.items())
    for file in directory.glob("*.toml"):
        text = file.read_text().replace('length = "1d"', f'length = "{WINDOW:.0f}s"')
        file.write_text(text.replace('grace = "2d"', 'grace = "30m"\npatience = "5s"'))


def begin_at_the_second_party(root: Path, variables: Mapping[str, str]) -> Site:
    """Make the keys: the page's first block, in a checkout."""
    (root / "deploy").symlink_to(DEPLOY)
    typed(documented("--role aux-signer", PAGE), root, **variables)
    settle(root / "aux-server", variables)
    return Site(root / "aux-server", variables["COMPOSE_PROJECT_NAME"], 0, ("aux-server.yaml",))


def begin_at_the_operator(root: Path, handed: Path, variables: Mapping[str, str], port: int) -> Site:
    """Do what deploy/README.md says, with the differences of the page; the two share a disk."""
    directory = root / "site"
    shutil.copytree(DEPLOY / "compose", directory)
    write_lines(directory / "settings.txt", ITEMS)
    pasted(documented("without-aux-server", PAGE), directory)
    for name in ("aux-server", "aux-signer"):
        shutil.copy(handed / f"{name}.json", directory / f"{name}-keys" / "public.json")
    own = [line for line in documented("--role analyzer").splitlines() if "at the auxiliary server" not in line]
    assert len(own) == 3
    pasted("\n".join(own) + "\n", directory)
    pasted(documented("mkdir -p trusted"), directory)
    pasted(documented("--out redacted.json").replace("--discovery", "--min-batch 20 --discovery"), directory)
    settle(directory, {**variables, "EXCHANGE": str(root / "aux-server" / "exchange")})
    pasted(documented("campaign publish --config redacted.toml"), directory)
    give_to_containers(directory, "analyzer-keys", "analyzer-signer-keys", "shuffler-keys")
    return Site(directory, variables["COMPOSE_PROJECT_NAME"], port, ("compose.yaml", "without-aux-server.yaml"))


@pytest.fixture(scope="module")
def apart(images: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Apart]:
    root, port = tmp_path_factory.mktemp("apart"), free_port()
    project = f"hushcount-apart-{os.getpid()}"
    second = begin_at_the_second_party(root, machine(f"{project}-second", port, images))
    try:
        operator = begin_at_the_operator(root, second.directory / "hand-over", machine(project, port, images), port)
        made = Apart(operator, second)
        for name in ("redacted.json", "settings-000001.dictionary.txt"):
            shutil.copy(operator.directory / name, second.directory / "received")
        for party in ("shuffler", "analyzer"):
            shutil.copy(operator.directory / "trusted" / party / "public.json", second.directory / "trusted" / party)
        with operator.running():
            made.paste("keys rehearse")
            made.post()
            operator.wait_until_counted(PATIENCE)
            yield made
    except BaseException:
        print(second.logs())
        raise
    finally:
        second.docker_compose("--profile", "by-hand", "down", "--timeout", "60", "--volumes")


def test_a_batch_goes_through_and_the_operator_has_its_results(apart: Apart) -> None:
    assert (apart.counted("analyze", "reports"), apart.counted("discover", "discovery")) == (len(VALUES), len(VALUES))
    assert apart.new() == {UNLISTED}
    for site, party in ((apart.operator, "shuffler"), (apart.operator, "analyzer"), (apart.second, "aux-server")):
        assert site.status(party)["differences"] == []
        assert [check for check in site.doctor(party) if check["verdict"] == "bad"] == []
    running = apart.operator.docker_compose("ps", "--services").stdout.split()
    assert {name for name in running if "aux" in name} == set()


def held_at_the_operator(apart: Apart, *secrets: str) -> dict[str, str]:
    """Return which secrets lie in a file of the operator's directory or volumes, by what root finds there."""
    project = f"label=com.docker.compose.project={apart.operator.project}"
    volumes = docker("volume", "ls", "--quiet", "--filter", project).stdout.split()
    mounts = [f"--volume={name}:/look/{number}:ro" for number, name in enumerate(volumes)]
    mounts.append(f"--volume={apart.operator.directory}:/look/site:ro")
    told = docker(
        "run", "--rm", "--interactive", "--user=0:0", *mounts, "--entrypoint=python", IMAGE, "-", "held",
        json.dumps(secrets), stdin=PROBES,
    )  # fmt: skip
    found: dict[str, str] = json.loads(told.stdout)
    return found


def test_the_operators_side_holds_no_key_of_the_auxiliary_server(apart: Apart) -> None:
    own = apart.operator.directory / "operator-keys"
    (file,) = own.glob("*.key")
    operators, theirs = json.loads(file.read_text())["secret"], apart.key()["secret"]
    # The probe finds a key that is there.
    assert set(held_at_the_operator(apart, operators, theirs)) == {operators}


def test_the_operator_alone_cannot_open_discovery(apart: Apart) -> None:
    """With each of its key directories, on a batch that it shuffled itself."""
    outputs = apart.second.directory / "exchange" / "to-aux-server" / "outputs" / "shuffled"
    batch, *_ = (path.parent for path in outputs.rglob("summary.json"))
    id, theirs = apart.key()["id"], f"{apart.second.project}_keys"
    directories = sorted(path.name for path in apart.operator.directory.glob("*-keys"))
    assert len(directories) == 6
    for source in (theirs, *(str(apart.operator.directory / keys) for keys in directories)):
        mounts = (f"--volume={outputs}:{outputs}:ro", f"--volume={apart.operator.directory}:/site:ro")
        told = docker(
            "run", "--rm", "--user=0:0", "--workdir=/tmp", *mounts, f"--volume={source}:/with:ro", IMAGE,
            "job", "discover", "--party", "aux-server", "--campaign", "/site/campaign.json", "--input", batch,
            "--keys", "/with", "--out", "out", check=False,
        )  # fmt: skip
        # The second party's own keys show that it is the key that the others lack.
        assert told.returncode == (0 if source == theirs else 2), told.stdout + told.stderr
        assert (id in told.stderr.replace("\n", "")) == (source != theirs), told.stderr


def test_leaving_destroys_the_key_and_frees_the_batches_that_wait(apart: Apart) -> None:
    before = len(VALUES)
    first = apart.key()["id"]
    with paused(apart.second, "aux-server"):
        apart.post()
        apart.operator.wait_until(
            lambda: apart.operator.numbers("shuffler")["shuffle", "discovery"] == 2 * before, "a second batch", PATIENCE
        )
        # The analyzer looks every two seconds: it has the frequency reports, and waits for the second party.
        time.sleep(20)
        assert apart.counted("analyze", "reports") == before
        apart.paste("keys retire", ID=first)
    left = apart.second.docker_compose("run", "--rm", "--no-TTY", "--entrypoint=ls", "hushcount", "/keys").stdout
    assert f"aux_server-{first}.key" not in left.split()
    apart.operator.wait_until(
        lambda: apart.counted("analyze", "reports") == 2 * before, "the count of the batch that waited", PATIENCE
    )
    second, operator = apart.second.status("aux-server"), apart.operator.status("analyzer")
    assert sum((Counter(hop["rejected"]) for hop in second["hops"]), Counter()) == {"retired_key": before}
    # What was released before stays, and nothing new is.
    assert apart.new() == {UNLISTED}
    accepted = Counter[str]()
    for hop in operator["hops"]:
        accepted[hop["hop"]] += hop["accepted"]
    assert (accepted["discover"], accepted["analyze"]) == (before, 2 * before)
    assert operator["waiting"] == second["waiting"] == []
