"""deploy/compose as an operator sets it up: by the commands of deploy/README.md, in a copy of the directory.

with laid_out(tmp_path / "site", project="name", stores=False) as site, site.running():
    posted = site.post(values)
    site.wait_for("results", 1)
    site.status("analyzer")
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from testcontainers.compose import DockerCompose

from hushcount.campaigns.campaign import Campaign
from tests.containers import posting
from tests.containers.posting import Posted
from tests.support.jobs import write_lines

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
CONFIG = "/etc/hushcount/deployment.toml"
ITEMS = [f"item-{number}" for number in range(40)]
PROGRAMS: Mapping[str, str] = {"shuffler": "shuffler_command", "aux-server": "pipelines", "analyzer": "pipelines"}
"""What a party's image runs, by its service."""
STANDINS: Mapping[str, str] = {
    "caddy": "hushcount-standin-caddy:2",
    "postgres": "hushcount-standin-postgres:17",
    "s3": "hushcount-standin-s3",
}
"""What stands for published images that cannot be pulled."""
KEY_DIRECTORIES = ("analyzer-keys", "aux-server-keys", "aux-signer-keys", "shuffler-keys")
_PATIENCE = 180.0


def documented(holding: str, page: Path = DEPLOY / "README.md") -> str:
    """Return the one block of shell commands of a page that holds some text."""
    blocks = re.findall(r"^```sh\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    (found,) = (block for block in blocks if holding in block)
    return str(found)


@dataclass
class Site:
    """A copy of deploy/compose with keys, campaigns and settings.

    Attributes:
        directory: the copy.
        project: of compose; containers are named PROJECT-SERVICE-1.
        port: of this machine, at which the proxy is reached.
        files: compose files, the first with the others laid over it.
    """

    directory: Path
    project: str
    port: int
    files: tuple[str, ...] = ("compose.yaml",)
    acknowledged: dict[str, int] = field(default_factory=lambda: {"reports": 0, "discovery": 0})

    @cached_property
    def compose(self) -> DockerCompose:
        return DockerCompose(self.directory, compose_file_name=list(self.files), wait=True)

    @property
    def campaign(self) -> Campaign:
        return Campaign.read(self.directory / "campaign.json")

    def docker_compose(self, *words: object, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Call docker compose on this deployment; what it says is in the failure."""
        command = [*self.compose.docker_compose_command(), *map(str, words)]
        done = subprocess.run(command, cwd=self.directory, capture_output=True, text=True, check=False)  # noqa: S603
        assert not check or done.returncode == 0, f"{shlex.join(command)}:\n{done.stdout}\n{done.stderr}"
        return done

    def up(self) -> None:
        """Start what is not running, and wait until every container is healthy."""
        done = self.docker_compose("up", "--detach", "--wait", check=False)
        assert done.returncode == 0, f"{done.stderr}\n{self.logs()}"
        self.docker_compose("cp", "proxy:/var/lib/caddy/caddy/pki/authorities/local/root.crt", "root.crt")

    def down(self, *, volumes: bool = False) -> None:
        """Remove containers and networks; what they stored stays unless `volumes` is set."""
        self.docker_compose("down", "--timeout", "60", *(["--volumes"] if volumes else []))

    @contextmanager
    def running(self) -> Iterator[Site]:
        """Run it for a block; what its containers said is printed if the block fails."""
        try:
            self.up()
            yield self
        except BaseException:
            sys.stdout.write(self.logs())
            raise
        finally:
            self.down(volumes=True)

    def logs(self, *services: str) -> str:
        return self.docker_compose("logs", "--no-color", "--tail", "200", *services, check=False).stdout

    def container(self, service: str) -> str:
        """Return the name of a service's container, for docker's own commands."""
        return f"{self.project}-{service}-1"

    def hushcount(self, party: str, *words: object, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command of hushcount in the container of a party's schedule, on its deployment file."""
        program = ("python", "-m", PROGRAMS[party])
        return self.docker_compose("exec", "-T", party, *program, *words, "--config", CONFIG, check=check)

    def status(self, party: str) -> dict[str, Any]:
        """Return what `hushcount status --json` says of the campaign at a party."""
        (of_campaign,) = json.loads(self.hushcount(party, "status", "--json").stdout)
        assert isinstance(of_campaign, dict)
        return of_campaign

    def doctor(self, party: str) -> list[dict[str, str]]:
        """Return the checks of `hushcount doctor` that are not good; its exit status is 0 unless one is bad."""
        checks = json.loads(self.hushcount(party, "doctor", "--json", check=False).stdout)
        return [check for check in checks if check["verdict"] != "good"]

    def received(self) -> dict[str, int]:
        """Return how many reports of each stream the shuffler's state has, in windows that are over."""
        counts = {"reports": 0, "discovery": 0}
        for window in self.status("shuffler")["windows"]:
            counts[window["stream"]] += window["received"]
        return counts

    def results(self) -> list[dict[str, Any]]:
        """Return the summary of every batch that the analyzer has results of, in the order of their windows."""
        find = "import pathlib; [print(p.read_text().replace(chr(10), ' ')) for p in "
        find += "sorted(pathlib.Path('/var/lib/hushcount/store/results').glob('*/*/summary.json'))]"
        lines = self.docker_compose("exec", "-T", "analyzer", "python", "-c", find).stdout.splitlines()
        return [json.loads(line) for line in lines]

    def reports_of(self, values: Sequence[str]) -> dict[str, list[bytes]]:
        """Return sealed reports of values for both streams, made by the project's client."""
        return posting.reports_of(self.campaign, self.directory / "policy.json", values)

    def post(self, values: Sequence[str], **options: Any) -> Posted:
        """Let as many clients as there are values post a report of each stream through the proxy."""
        return self.post_made(self.reports_of(values), **options)

    def post_made(self, reports: dict[str, list[bytes]], **options: Any) -> Posted:
        """Post reports that were made before, and count what is acknowledged."""
        site = posting.Site(self.port, self.directory / "root.crt")
        posted = posting.post(site, self.campaign, reports, **options)
        for stream, number in posted.acknowledged.items():
            self.acknowledged[stream] += number
        return posted

    def wait_until(self, condition: Callable[[], object], what: str, seconds: float = _PATIENCE) -> None:
        """Wait until a condition holds; the containers' logs are in the failure."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"{what} did not happen in {seconds} s\n{self.logs()}"
            time.sleep(1.0)

    def wait_until_counted(self, seconds: float = _PATIENCE) -> None:
        """Wait until the analyzer has results of every report that was acknowledged."""
        wanted = self.acknowledged["reports"]

        def counted() -> bool:
            return sum(hop["received"] for hop in self.status("analyzer")["hops"] if hop["hop"] == "analyze") >= wanted

        self.wait_until(counted, f"results of {wanted} reports", seconds)


def lay_out(
    directory: Path,
    project: str,
    *,
    stores: bool = False,
    length: str = "1m",
    grace: str = "1m",
    every: str = "2",
    campaign: Sequence[str] = (),
    images: Mapping[str, str] | None = None,
) -> Site:
    """Make a deployment as deploy/README.md says, with short windows; nothing is started.

    Args:
        directory: that does not exist yet.
        project: of compose; give each test its own.
        stores: whether PostgreSQL and an S3 store are used.
        length: of windows.
        grace: after windows.
        every: seconds between two looks of schedules and of what hands on.
        campaign: further options of `hushcount campaign new`.
        images: the fixture of that name; without it the stand-ins are used.
    """
    _copy(directory, length, grace)
    for holding in (
        "--role analyzer",
        "mkdir -p trusted",
        "--out redacted.json",
        "epoch publish --config redacted.toml",
    ):
        commands = documented(holding)
        if "campaign new" in commands:
            commands = commands.replace("--discovery-epsilon", f"{shlex.join(campaign)} --discovery-epsilon")
        paste(commands, directory)
    if stores:
        paste(documented("new_secrets.py"), directory)
    give_to_containers(directory, *KEY_DIRECTORIES, *(["secrets"] if stores else []))
    files = ("compose.yaml", *(("stores.yaml",) if stores else ()))
    return _settled(directory, project, files, images, EVERY=every)


def lay_out_evaluator(directory: Path, project: str, images: Mapping[str, str] | None = None) -> Site:
    """Make the deployment of an evaluator alone, as deploy/README.md says; its campaign file is typed.json."""
    _copy(directory, "1d", "2d")
    for holding in ("--role analyzer", "--role evaluator", "COMPOSE_FILE=evaluator.yaml"):
        paste(documented(holding), directory)
    give_to_containers(directory, "evaluator-keys", "verifier")
    return _settled(directory, project, ("evaluator.yaml",), images)


def _copy(directory: Path, length: str, grace: str) -> None:
    """Copy deploy/compose, and edit the windows."""
    shutil.copytree(DEPLOY / "compose", directory)
    write_lines(directory / "settings.txt", ITEMS)
    for file in (*directory.glob("*.toml"), *(directory / "stores").glob("*.toml")):
        text = file.read_text().replace('length = "1d"', f'length = "{length}"')
        file.write_text(text.replace('grace = "2d"', f'grace = "{grace}"\npatience = "5s"'))


def _settled(
    directory: Path, project: str, files: tuple[str, ...], images: Mapping[str, str] | None, **more: str
) -> Site:
    """Add what differs from machine to machine to .env."""
    port = free_port()
    variables = {
        "COMPOSE_PROJECT_NAME": project,
        "LISTEN": f"127.0.0.1:{port}",
        **{f"{name.upper()}_IMAGE": (images or STANDINS)[name] for name in STANDINS},
        "VERSION": os.environ.get("VERSION", "0.1.0"),
        **more,
    }
    with (directory / ".env").open("a") as settings:
        settings.writelines(f"{name}={value}\n" for name, value in variables.items())
    return Site(directory, project, port, files)


def paste(commands: str, directory: Path) -> str:
    """Run documented commands in a directory, with the hushcount of this checkout; return what they print.

    `sudo chown` is what `give_to_containers` does, and `docker compose up` what `Site.up` does.
    """
    python = shlex.quote(sys.executable)
    commands = re.sub(r"^(sudo chown|docker compose up) .*\n", "", commands, flags=re.MULTILINE)
    commands = re.sub(r"^python |(?<=; )python ", f"{python} ", commands, flags=re.MULTILINE)
    commands = re.sub(r"^( *)hushcount ", rf"\1{python} -m pipelines ", commands, flags=re.MULTILINE)
    done = subprocess.run(  # noqa: S603  # the documentation's own lines
        ["sh", "-ec", commands],  # noqa: S607
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{commands}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def give_to_containers(directory: Path, *names: str) -> None:
    """Do what `sudo chown` does in the documentation, by a container, so that no test need be root."""
    owned = [f"/site/{name}" for name in names]
    mounted = ["--rm", "--user=0:0", f"--volume={directory}:/site", "--entrypoint=chown", "hushcount-shuffler:0.1.0"]
    subprocess.run(["docker", "run", *mounted, "-R", "10001:10001", *owned], check=True)  # noqa: S603, S607


def free_port() -> int:
    """Return a port of this machine that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
