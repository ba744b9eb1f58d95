"""deploy/README.md: what it tells people to type does what it says."""

from __future__ import annotations

import os
import re
import shlex
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.dataflow.graph_check import PROJECT
from hushcount.campaigns.campaign import Campaign
from pipelines.deployment.campaigns import read_campaign
from pipelines.deployment.settings import Deployment
from tests.deploy.conftest import DEPLOY, RECIPES, ROOT
from tests.support.jobs import Chain

README = (DEPLOY / "README.md").read_text(encoding="utf-8")


def block(*, holding: str) -> str:
    """Return the shell block of the README that holds this."""
    (found,) = [one for one in re.findall(r"```sh\n(.*?)```", README, re.DOTALL) if holding in one]
    return str(found)


@pytest.mark.long
def test_the_documented_commands_make_both_directories_of_campaigns(chain: Chain, tmp_path: Path) -> None:
    for name, source in (("campaign.json", chain.campaign_path), (chain.dictionary.name, chain.dictionary)):
        (tmp_path / name).write_bytes(source.read_bytes())
    Campaign.read(chain.campaign_path).redacted().write(tmp_path / "redacted.json")
    for name in ("whole.toml", "redacted.toml"):
        (tmp_path / name).write_bytes((DEPLOY / "compose" / name).read_bytes())
    commands = block(holding="redacted.toml")
    ours = f"{shlex.quote(sys.executable)} -m pipelines"
    done = subprocess.run(  # noqa: S603  # our own commands
        ["sh", "-ec", commands.replace("hushcount ", f"{ours} ")],  # noqa: S607  # the README's own lines
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for name, whole in (("campaigns", True), ("redacted-campaigns", False)):
        made = read_campaign(tmp_path / name / chain.campaign.id).newest[1]
        assert made.fingerprint == chain.campaign.fingerprint
        assert made.discovery is not None
        assert (made.discovery.hash_key is not None) == whole
    # The windows are those of the parties' own files.
    for party in ("shuffler", "aux-server", "analyzer"):
        file = Deployment.read(DEPLOY / "compose" / f"{party}.toml").file
        assert file.windows == Deployment.read(tmp_path / "whole.toml").file.windows


@pytest.mark.long
def test_the_documented_way_to_hand_on_starts_from_a_checkout(tmp_path: Path) -> None:
    """A script finds what lies beside it before what is installed."""
    (documented,) = re.findall(r"`python (deploy/\S+hand_on\.py|deploy/hand_on\.py) (--config .*?)`", README)
    script, options = documented
    source = tmp_path / "shuffled"
    source.mkdir()
    (tmp_path / "deployment.toml").write_text('store = "."\nwindows = {length = "1d", grace = "2d"}\n')
    done = subprocess.run(  # noqa: S603  # our own script
        [sys.executable, ROOT / script, *shlex.split(options)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_the_documented_way_to_finish_starts_the_launcher_and_not_a_worker() -> None:
    """The image's own entry point is what Dataflow starts workers by."""
    recipe = (DEPLOY / "dataflow" / "Dockerfile").read_text()
    assert re.findall(r"^ENTRYPOINT (.*)$", recipe, re.MULTILINE) == ['["/opt/apache/beam/boot"]']
    runs = [line for line in README.splitlines() if line.startswith("docker run ") and "/dataflow:" in line]
    assert runs
    for line in runs:
        words = shlex.split(line)
        assert words[2:4] == ["--entrypoint", "python"]
        assert words[5:7] == ["/opt/hushcount/launch.py", "finish"]
        assert "COPY deploy/dataflow/*.py /opt/hushcount/\n" in recipe
        given = {word.partition("=")[0] for word in words[7:]}
        assert given == {"--job", "--campaign", "--input", "--keys", "--signed_by", "--out"}


def test_the_documented_image_with_wrapped_keys_can_be_read_by_its_user_alone(tmp_path: Path) -> None:
    """What the recipe runs, run on a directory as a builder leaves it."""
    (recipe,) = re.findall(r"```dockerfile\n(FROM [^`]*wrapped-keys[^`]*)```", README)
    instructions = recipe.splitlines()
    (copied,) = [line for line in instructions if line.startswith("COPY ")]
    # A builder that takes a mode for the files takes it for the directory too, which then cannot be entered.
    assert "--chmod" not in copied
    where = copied.split()[-1]
    directory = tmp_path / "keys"
    directory.mkdir(mode=0o755)
    for name in ("analyzer-1.key", "public.json"):
        (directory / name).write_text("{}")
        (directory / name).chmod(0o644)
    (command,) = [line.removeprefix("RUN ") for line in instructions if line.startswith("RUN ")]
    users = [line.removeprefix("USER ") for line in instructions if line.startswith("USER ")]
    assert users == ["0:0", "10001:10001"]
    assert f"chown -R {users[-1]} {where}" in command
    command = command.replace(users[-1], f"{os.getuid()}:{os.getgid()}").replace(where, str(directory))
    subprocess.run(["sh", "-c", command], check=True)  # noqa: S603, S607  # the recipe's own line
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()} == {0o600}


def unread(text: str, sources: str) -> list[str]:
    """Return the variables of ours that a recipe sets and no source names."""
    return [name for name in re.findall(r"\b(HUSHCOUNT_\w+)=", text) if name not in sources]


def test_what_an_image_sets_is_read_by_something() -> None:
    """A variable of ours that nothing reads would only seem to say something."""
    files = (path for folder in (*PROJECT, "deploy") for path in (ROOT / folder).rglob("*.*"))
    sources = "\n".join(path.read_text() for path in files if path.suffix in (".py", ".sh"))
    assert unread("ENV HUSHCOUNT_OTHER=1", sources) == ["HUSHCOUNT_OTHER"]
    assert unread("ENV HUSHCOUNT_OTHER=1", f"{sources}HUSHCOUNT_OTHER") == []
    for path in RECIPES:
        assert unread(path.read_text(), sources) == [], path.name
