"""The images, built and run by a Docker engine: make test-images. Skipped, with the reason, where no engine runs.

What is built here has the tag `test`, and is removed at the end.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from tests.deploy.conftest import DEPLOY, ROOT
from tests.deploy.test_images import PARTIES
from tests.support.jobs import Chain


def docker(*arguments: object, check: bool = True) -> subprocess.CompletedProcess[str]:
    command = ["docker", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  # our own images
    assert not check or done.returncode == 0, f"{command}:\n{done.stdout}\n{done.stderr}"
    return done


@pytest.fixture(scope="module", autouse=True)
def engine() -> None:
    if shutil.which("docker") is None:
        pytest.skip("docker is not installed: the images were NOT built or run")
    if docker("info", check=False).returncode:
        pytest.skip("no Docker engine answers: the images were NOT built or run")


@pytest.fixture(scope="module", params=PARTIES)
def image(request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    tag = f"hushcount-{request.param}:test"
    docker("build", "--quiet", "--file", DEPLOY / "images" / f"{request.param}.Dockerfile", "--tag", tag, ROOT)
    yield request.param, tag
    docker("image", "rm", "--force", tag)


RESTRICTED = (
    "--rm",
    "--read-only",
    "--network=none",
    "--cap-drop=ALL",
    "--security-opt=no-new-privileges",
    "--tmpfs=/tmp",
)


def test_an_image_runs_its_job_as_nobody_in_particular_without_network(
    image: tuple[str, str], chain: Chain, tmp_path_factory: pytest.TempPathFactory
) -> None:
    party, tag = image
    made = tmp_path_factory.mktemp("made")
    source = {"shuffler": "encoded", "aux-server": "shuffled", "analyzer": "shuffled"}[party]
    job = {"shuffler": ["shuffle"], "aux-server": ["discover", "--party", "aux-server"], "analyzer": ["analyze"]}[party]
    # Whoever runs the tests owns the keys, which are for their owner alone.
    user = f"--user={chain.campaign_path.stat().st_uid}:{chain.campaign_path.stat().st_gid}"
    arguments = [*job, "--campaign", f"/in/{chain.campaign_path.name}", "--input", f"/in/{chain.path(source).name}"]
    arguments += [] if party == "shuffler" else ["--keys", "/in/keys"]
    mounted = (f"--volume={chain.campaign_path.parent}:/in:ro", f"--volume={made}:/made")
    docker("run", *RESTRICTED, user, *mounted, tag, *arguments, "--out", "/made/out")
    assert json.loads((made / "out" / "summary.json").read_text())["campaign"] == chain.campaign.id


def test_an_image_is_nobodys_root_and_holds_its_packages_alone(image: tuple[str, str]) -> None:
    party, tag = image
    config = json.loads(docker("image", "inspect", tag).stdout)[0]["Config"]
    assert config["User"] == "10001:10001"
    listed = docker("run", *RESTRICTED, "--entrypoint", "ls", tag, "/opt/hushcount").stdout.split()
    runs = {"shuffler_command.py"} if party == "shuffler" else set()
    hands_on = set() if party == "analyzer" else {"hand_on.py"}
    assert set(listed) == PARTIES[party] | runs | hands_on
    everything = docker("run", *RESTRICTED, "--entrypoint", "find", tag, "/", "-xdev", "-name", "*.key").stdout
    assert [path for path in everything.split() if "hushcount" in path] == []


def test_flinks_workers_start_from_a_partys_image(image: tuple[str, str]) -> None:
    """The pool answers at its port, and the program that it starts workers with is there and can be executed."""
    _, tag = image
    recipe = DEPLOY / "images" / "flink-worker.Dockerfile"
    worker = tag.replace(":test", "-worker:test")
    docker("build", "--quiet", "--file", recipe, "--build-arg", f"PARTY={tag}", "--tag", worker, ROOT)
    started = docker("run", "--detach", *RESTRICTED, worker).stdout.strip()
    try:
        ask = "import socket, time\nfor _ in range(60):\n  try: socket.create_connection(('localhost', 50000)); break\n"
        ask += "  except OSError: time.sleep(1)\nelse: raise SystemExit('no pool')"
        docker("exec", started, "python", "-c", ask)
        docker("exec", started, "test", "-x", "/opt/hushcount/worker.py")
    finally:
        docker("rm", "--force", started)
        docker("image", "rm", "--force", worker)
