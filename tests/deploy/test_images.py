"""deploy/images: each holds its party's packages and no other, runs its jobs with them, is pinned and unprivileged."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from keys.directories import create
from tests.deploy.conftest import DEPLOY, RECIPES, ROOT, TOOLS, images_python
from tests.support.jobs import Chain

FOLDER = DEPLOY / "images"
# A deployment file has the settings of collector, evaluator and issuer, whoever reads it.
_SETTINGS = {"hushcount", "service", "shuffler", "evaluator", "issuer", "pipelines"}
HELD = {
    "shuffler": _SETTINGS,
    "shuffler-signing": _SETTINGS | {"keys"},
    "evaluator": _SETTINGS | {"keys"},
    "issuer": _SETTINGS | {"keys"},
    # hushcount run composes all jobs: these two hold all code, and no key.
    "aux-server": _SETTINGS | {"sealed_lanes", "keys", "aux_server", "analyzer"},
    "analyzer": _SETTINGS | {"sealed_lanes", "keys", "aux_server", "analyzer"},
}
PARTIES = ("shuffler", "aux-server", "analyzer")
MODULES = {
    "shuffler": "shuffler_command",
    "shuffler-signing": "shuffler_command",
    "evaluator": "evaluator_command",
    "issuer": "issuer_command",
    "aux-server": "pipelines",
    "analyzer": "pipelines",
}


def recipe(target: str) -> str:
    """Return the stages that a target of the parties' recipe is made of, the first one first."""
    text = (FOLDER / "party.Dockerfile").read_text()
    stages = re.findall(r"^FROM (\S+) AS (\S+)\n(.*?)(?=^FROM |\Z)", text, re.MULTILINE | re.DOTALL)
    bases = {name: (base, body) for base, name, body in stages}
    base, body = bases[target]
    return (recipe(base) if base in bases else "") + body


def copies(text: str) -> dict[str, str]:
    """Return what of the checkout a recipe puts under /opt/hushcount, by where."""
    found = re.findall(r"^COPY (?:--chmod=\d+ )?([\w./-]+) (/opt/hushcount/[\w./-]+)$", text, re.MULTILINE)
    return {target: source for source, target in found}


def test_an_image_holds_its_partys_packages_by_name(subtests: pytest.Subtests) -> None:
    for party, packages in HELD.items():
        with subtests.test(party=party):
            copied = copies(recipe(party)).items()
            assert {source for target, source in copied if target == f"/opt/hushcount/{source}"} == packages


def test_the_shufflers_image_has_nothing_that_opens_a_report() -> None:
    assert not {"sealed_lanes", "keys", "analyzer", "aux_server"} & HELD["shuffler"]
    assert not re.search(r"COPY .*\b(sealed_lanes|keys|analyzer|aux_server)\b", recipe("shuffler"))
    assert not re.search(
        r"COPY .*\b(analyzer|aux_server)\b", "".join(map(recipe, ("shuffler-signing", "evaluator", "issuer")))
    )


def test_an_image_is_unprivileged_and_pinned(subtests: pytest.Subtests) -> None:
    for path in RECIPES:
        with subtests.test(path=path):
            text = path.read_text()
            users = re.findall(r"^USER (\S+)$", text, re.MULTILINE)
            # Root installs; what runs is nobody in particular.
            assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", users[-1])
            assert ":latest" not in text
            for name, base in re.findall(r"^ARG (\w+)=(\S+)$", text, re.MULTILINE):
                if "/" in base:
                    assert re.search(r":[\w.-]+(@sha256:[0-9a-f]{64})?$", base), name
            python = re.search(r"^ARG BASE=\S+@sha256:[0-9a-f]{64}$", text, re.MULTILINE)
            assert python or not re.search(r"^FROM \$\{BASE\}", text, re.MULTILINE)
            for install in re.findall(r"pip install .*?(?=\n[A-Z])", text, re.DOTALL):
                assert {"--require-hashes", "--no-deps"} <= set(install.split())
                assert "pip --disable-pip-version-check check" in install
            assert not re.search(r"^(ADD|VOLUME) |apt-get|curl |wget |\.key\b|secret", text, re.MULTILINE)


def test_an_extras_packages_are_locked_as_wheels_for_the_images_python(subtests: pytest.Subtests) -> None:
    """The resolver refused what is a source only; tests/deploy/on_index.py asks the index of all that is locked."""
    for cloud, libraries in (
        ("gcp", ("google-cloud-kms", "google-cloud-secret-manager", "google-crc32c")),
        ("aws", ("boto3",)),
        ("issuer", ("gmpy2",)),
        ("telemetry", ("opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http")),
    ):
        with subtests.test(cloud=cloud):
            version = images_python()
            lock = (FOLDER / f"{cloud}.lock").read_text()
            (made,) = re.findall(r"^# +uv pip compile (.*)$", lock, re.MULTILINE)
            assert f"--python-version {version} " in made
            assert "--only-binary :all: " in made
            (again,) = re.findall(
                rf"uv pip compile (.*deploy/images/{cloud}\.lock)$", (ROOT / "Makefile").read_text(), re.MULTILINE
            )
            assert again.replace("--quiet ", "") == made
            assert set(libraries) <= set(re.findall(r"^([\w-]+)==", lock, re.MULTILINE))


def test_the_images_python_is_that_of_dataflow() -> None:
    version = images_python()
    recipe = (DEPLOY / "dataflow" / "Dockerfile").read_text()
    assert f"ARG SDK=apache/beam_python{version}_sdk:" in recipe
    assert f"image of Python {version} for flex templates" in recipe


def test_the_builders_python_is_the_bases() -> None:
    text = (FOLDER / "party.Dockerfile").read_text()
    (base,), (builder,) = (
        re.findall(rf"^ARG {name}=python:([\d.]+)-", text, re.MULTILINE) for name in ("BASE", "BUILDER")
    )
    assert base == builder


def test_the_builder_is_given_no_more_than_is_copied(subtests: pytest.Subtests) -> None:
    for path in RECIPES:
        with subtests.test(path=path):
            lines = path.with_name(f"{path.name}.dockerignore").read_text().splitlines()
            allowed = [line[1:] for line in lines if line.startswith("!")]
            assert "*" in lines
            assert lines[-1] == "**/*.key"
            sources = re.findall(r"^COPY (?!--from)(?:--chmod=\d+ )?(.+) \S+$", path.read_text(), re.MULTILINE)
            for source in " ".join(sources).split():
                assert any(source == one or source.startswith(f"{one}/") for one in allowed), source
            assert all(any(ROOT.glob(one)) for one in allowed)


@pytest.fixture(scope="module", params=PARTIES)
def image(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What a recipe puts under /opt/hushcount, in a directory: the same files, without the container around them."""
    root = tmp_path_factory.mktemp(request.param)
    unpack(recipe(request.param), root)
    return request.param, root


def unpack(text: str, root: Path) -> None:
    for target, source in copies(text).items():
        made = root / target.removeprefix("/opt/hushcount/")
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, made, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / source, made)


def run(
    image: tuple[str, Path], *arguments: object, at: Path, module: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the image's entry point, or another module, with its packages, what is installed, nothing of the checkout."""
    party, root = image
    paths = [str(root), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    name = module or MODULES[party]
    start = f"import runpy, sys; sys.path[:0] = {paths!r}; runpy.run_module({name!r}, run_name='__main__')"
    # As in the image: what compiles finds a place that can be written.
    environment = {"PATH": os.environ["PATH"], "HOME": str(at), "NUMBA_CACHE_DIR": str(at / "numba")}
    return subprocess.run(  # noqa: S603  # our own packages
        [sys.executable, "-I", "-S", "-c", start, *map(str, arguments)],
        cwd=at,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_entry_point_is_the_images() -> None:
    for party, module in MODULES.items():
        stages = recipe(party)
        assert re.findall(r"^ENTRYPOINT (.*)$", stages, re.MULTILINE)[-1] == '["hushcount"]'
        assert re.findall(r"HUSHCOUNT_PROGRAM=(\w+)$", stages, re.MULTILINE)[-1] == module


@pytest.mark.long
def test_a_party_runs_its_jobs_with_its_packages_alone(image: tuple[str, Path], chain: Chain, tmp_path: Path) -> None:
    common = ("--campaign", chain.campaign_path)
    keys = ("--keys", chain.keys)
    jobs = {
        "shuffler": [("job", "shuffle", *common, "--input", chain.path("encoded"))],
        "aux-server": [("job", "discover", "--party", "aux-server", *common, *keys, "--input", chain.path("shuffled"))],
        "analyzer": [
            ("job", "discover", "--party", "analyzer", *common, *keys, "--input", chain.path("released")),
            ("job", "analyze", *common, *keys, "--input", chain.path("shuffled")),
        ],
    }
    for index, job in enumerate(jobs[image[0]]):
        out = tmp_path / f"out {index}"
        ended = run(image, *job, "--out", out, at=tmp_path)
        assert ended.returncode == 0, ended.stderr
        assert (out / "summary.json").exists()


@pytest.mark.long
def test_the_shuffler_signs_by_the_image_for_that_and_by_no_other(chain: Chain, tmp_path: Path) -> None:
    create(tmp_path / "signing-keys", 365, ["shuffler"])
    job = ("job", "shuffle", "--campaign", chain.campaign_path, "--input", chain.path("encoded"))
    for text, signs in ((recipe("shuffler-signing"), True), (recipe("shuffler"), False)):
        root, out = tmp_path / f"image {signs}", tmp_path / f"out {signs}"
        root.mkdir()
        unpack(text, root)
        ended = run(("shuffler", root), *job, "--sign-with", tmp_path / "signing-keys", "--out", out, at=tmp_path)
        assert (ended.returncode == 0) == signs, ended.stderr
        assert (out / "summary.json.sig").exists() == signs
    assert "error: the output cannot be signed: this image lacks the package keys" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.long
def test_the_shufflers_schedule_and_collector_start_without_what_opens(image: tuple[str, Path], tmp_path: Path) -> None:
    """They load all that they need before they miss their deployment file."""
    commands = {"shuffler": ("run", "status", "collect")}.get(image[0], ("run", "status"))
    for command in commands:
        ended = run(image, command, "--config", tmp_path / "missing.toml", at=tmp_path)
        assert ended.returncode == 2, ended.stderr
        assert "missing.toml" in ended.stderr.replace("\n", "")


@pytest.mark.long(but=("shuffler",))
def test_who_hands_on_has_the_means_in_its_image(image: tuple[str, Path], tmp_path: Path) -> None:
    ended = run(
        image, "--config", tmp_path / "missing.toml", "--hand", "released/bins=x", at=tmp_path, module="hand_on"
    )
    if image[0] == "analyzer":
        assert "No module named hand_on" in ended.stderr
    else:
        assert ended.returncode == 2, ended.stderr
        assert "missing.toml" in ended.stderr
        assert "Traceback" not in ended.stderr


@pytest.mark.long(but=("shuffler",))
def test_every_party_publishes_epochs_by_its_image(image: tuple[str, Path], chain: Chain, tmp_path: Path) -> None:
    """So do they get campaign files into a volume: deploy/kubernetes/engine/publish.yaml."""
    (tmp_path / "deployment.toml").write_text('store = "store"\n[windows]\nlength = "1d"\ngrace = "2d"\n')
    ended = run(
        image, "campaign", "publish", "--config", "deployment.toml", "--campaign", chain.campaign_path, at=tmp_path
    )
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "campaigns" / chain.campaign.id / "collection.json").exists()


def test_a_shuffler_cannot_open_what_it_has(image: tuple[str, Path], chain: Chain, tmp_path: Path) -> None:
    if image[0] != "shuffler":
        assert (image[1] / "keys").is_dir()
        return
    ended = run(image, "job", "analyze", "--campaign", chain.campaign_path, at=tmp_path)
    assert ended.returncode == 2
    assert "no such command" in ended.stderr


def test_hadolint_finds_nothing() -> None:
    tool = shutil.which("hadolint") or shutil.which("hadolint", path=TOOLS)
    if tool is None:
        pytest.skip("hadolint is not installed: the recipes of images were NOT linted; make deploy-tools fetches it")
    linted = subprocess.run([tool, *RECIPES], capture_output=True, text=True, check=False)  # noqa: S603  # a linter
    assert linted.returncode == 0, linted.stdout
