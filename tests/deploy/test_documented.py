"""deploy/README.md: what it tells people to type does what it says."""

from __future__ import annotations

import os
import re
import shlex
import stat
import subprocess
from pathlib import Path

from tests.deploy.conftest import DEPLOY, ROOT

README = (DEPLOY / "README.md").read_text(encoding="utf-8")


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
        assert f"COPY deploy/dataflow/launch.py {words[5]}" in recipe
        given = {word.partition("=")[0] for word in words[7:]}
        assert given == {"--job", "--campaign", "--input", "--keys", "--out"}


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


def test_what_an_image_sets_is_read_by_something() -> None:
    """A variable of ours that nothing reads would only seem to say something."""
    sources = "\n".join(
        path.read_text()
        for folder in ("hushcount", "keys", "shuffler", "analyzer", "aux_server", "pipelines", "deploy")
        for path in (ROOT / folder).rglob("*.py")
    )
    for path in (*(DEPLOY / "images").glob("*.Dockerfile"), DEPLOY / "dataflow" / "Dockerfile"):
        for name in re.findall(r"\b(HUSHCOUNT_\w+)=", path.read_text()):
            assert name in sources, f"{path.name}: {name}"
