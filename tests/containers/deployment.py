"""deploy/compose as an operator sets it up: by the commands of deploy/README.md, in a copy of the directory.

with laid_out(tmp_path / "site", project="name") as site, site.running():
    posted = site.post(values)
    site.wait_for("results", 1)
    site.status("analyzer")
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from hushcount import __version__
from tests.containers.build import EXTRAS
from tests.containers.site import Site
from tests.support.jobs import write_lines
from tests.support.ports import free_port

__all__ = [
    "DEPLOY",
    "ITEMS",
    "ROOT",
    "STANDIN",
    "Site",
    "documented",
    "give_to_containers",
    "lay_out",
    "lay_out_evaluator",
    "lay_out_issuer",
    "paste",
]
ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
ITEMS = [f"item-{number}" for number in range(40)]
STANDIN = "hushcount-standin-caddy:2"
"""What stands for the published proxy, if that cannot be pulled."""
KEY_DIRECTORIES = ("analyzer-keys", "analyzer-signer-keys", "aux-server-keys", "aux-signer-keys", "shuffler-keys")


def documented(holding: str, page: Path = DEPLOY / "README.md") -> str:
    """Return the one block of shell commands of a page that holds some text."""
    blocks = re.findall(r"^```sh\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    (found,) = (block for block in blocks if holding in block)
    return str(found)


def lay_out(
    directory: Path,
    project: str,
    *,
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
        "campaign publish --config redacted.toml",
    ):
        commands = documented(holding)
        if "campaign new" in commands:
            commands = commands.replace("--discovery-epsilon", f"{shlex.join(campaign)} --discovery-epsilon")
        paste(commands, directory)
    give_to_containers(directory, *KEY_DIRECTORIES)
    return _settled(directory, project, "compose.yaml", images, EVERY=every)


def lay_out_evaluator(directory: Path, project: str, images: Mapping[str, str] | None = None) -> Site:
    """Make the deployment of an evaluator alone, as deploy/README.md says; its campaign file is typed.json."""
    _copy(directory, "1d", "2d")
    for holding in ("--role analyzer", "--role evaluator", "COMPOSE_FILE=evaluator.yaml"):
        paste(documented(holding), directory)
    give_to_containers(directory, "evaluator-keys", "verifier")
    return _settled(directory, project, "evaluator.yaml", images)


def lay_out_issuer(directory: Path, project: str, images: Mapping[str, str] | None = None) -> Site:
    """Make the deployment of an issuer alone, as deploy/README.md says, for the campaign `pages`."""
    _copy(directory, "1d", "2d")
    paste(documented("COMPOSE_FILE=issuer.yaml"), directory)
    give_to_containers(directory, "passes", "rule")
    return _settled(directory, project, "issuer.yaml", images)


def _copy(directory: Path, length: str, grace: str) -> None:
    """Copy deploy/compose, and edit the windows."""
    shutil.copytree(DEPLOY / "compose", directory)
    write_lines(directory / "settings.txt", ITEMS)
    for file in directory.glob("*.toml"):
        text = file.read_text().replace('length = "1d"', f'length = "{length}"')
        file.write_text(text.replace('grace = "2d"', f'grace = "{grace}"\npatience = "5s"'))


def _settled(directory: Path, project: str, file: str, images: Mapping[str, str] | None, **more: str) -> Site:
    """Add what differs from machine to machine to .env."""
    port = free_port()
    given = {"caddy": STANDIN} if images is None else images
    variables = {**machine(project, port, given), "SITE": "localhost", **more}
    with (directory / ".env").open("a") as settings:
        settings.writelines(f"{name}={value}\n" for name, value in variables.items())
    return Site(directory, project, port, tuple(file.split(":")))


def machine(project: str, port: int, images: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of compose files that differ from machine to machine; base images are those of `images`."""
    bases = {"BASE": "python", "BUILDER": "builder", "CADDY_IMAGE": "caddy"}
    return {
        "COMPOSE_PROJECT_NAME": project,
        "LISTEN": f"127.0.0.1:{port}",
        "VERSION": os.environ.get("VERSION", __version__),
        "CHECKOUT": str(ROOT),
        "EXTRAS": EXTRAS,
        **{name: images[image] for name, image in bases.items() if image in images},
    }


def paste(commands: str, directory: Path) -> str:
    """Run documented commands in a directory, with the hushcount of this checkout; return what they print.

    `sudo chown` is what `give_to_containers` does, and `docker compose up` what `Site.up` does.
    """
    python = shlex.quote(sys.executable)
    commands = re.sub(r"^(sudo chown|docker compose up) .*\n", "", commands, flags=re.MULTILINE)
    commands = re.sub(r"^python |(?<=; )python ", f"{python} ", commands, flags=re.MULTILINE)
    commands = re.sub(r"(^ *|; do )hushcount ", rf"\1{python} -m pipelines ", commands, flags=re.MULTILINE)
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
