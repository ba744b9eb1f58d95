"""Base images: published ones where they can be pulled, elsewhere stand-ins of the same shape from Debian's packages.

A result on a stand-in says nothing about the published base. All that recipes put on it is the same.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import ssl
import subprocess
import tempfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from tests.containers.engine import PLUGINS, NoEngineError, docker, install, missing_plugins

ROOT = Path(__file__).parents[2]
RECIPES = Path(__file__).parent / "standins"
DEBIAN = "http://deb.debian.org/debian"
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n?")


@dataclass(frozen=True)
class Root:
    """A small Debian by debootstrap, which checks the archive's signature, with this machine's certificates."""

    tag: str
    suite: str
    packages: tuple[str, ...]


@dataclass(frozen=True)
class StandIn:
    """An image that stands for a published one.

    Attributes:
        recipe: standins/NAME.Dockerfile; empty where the image is a Root.
        on: The tags of the stand-ins that it is built from.
        program: What Go installs, with its version; the recipe copies it. It needs go on this machine.
    """

    tag: str
    recipe: str = ""
    on: tuple[str, ...] = ()
    program: str = ""


PYTHON = Root(
    "hushcount-standin-python:3.13", "trixie", ("ca-certificates", "python3", "python3-venv", "python-is-python3")
)
OLDER = Root("hushcount-standin-debian:12", "bookworm", ("ca-certificates",))
"""Java 17 is in Debian 12, and no longer in 13."""
_BOOT = "github.com/apache/beam/sdks/v2/python/container"
ROOTS = {root.tag: root for root in (PYTHON, OLDER)}
STANDINS = {
    "python": StandIn(PYTHON.tag),
    "builder": StandIn("hushcount-standin-builder:3.13", "builder", (PYTHON.tag,)),
    "java": StandIn("hushcount-standin-java:17", "java", (OLDER.tag,)),
    "maven": StandIn("hushcount-standin-maven:3", "maven", ("hushcount-standin-java:17",)),
    "flink": StandIn("hushcount-standin-flink:1.19", "flink", ("hushcount-standin-java:17",)),
    "caddy": StandIn("hushcount-standin-caddy:2", "caddy", (PYTHON.tag,)),
    "sdk": StandIn("hushcount-standin-sdk:2", "sdk", (PYTHON.tag,), f"{_BOOT}@v{version('apache-beam')}"),
    "launcher": StandIn("hushcount-standin-launcher", "launcher", (PYTHON.tag,)),
    "s3": StandIn("hushcount-standin-s3", "s3", (PYTHON.tag,), "github.com/versity/versitygw/cmd/versitygw@v1.8.0"),
}


def base(name: str, published: str) -> str:
    """Return an image for one of STANDINS: the published one if it is here or can be pulled, else the stand-in.

    Args:
        name: The stand-in's.
        published: The published image, or nothing where no recipe names one.

    Raises:
        NoEngineError: The stand-in cannot be made on this machine.
    """
    if published and docker("image", "inspect", published, check=False).returncode == 0:
        return published
    if published and docker("pull", "--quiet", published, check=False, timeout=900).returncode == 0:
        return published
    return _made(STANDINS[name])


def ensure_plugins() -> None:
    """Give this user's docker client the commands that it lacks, from Debian 13, whose apt checks what it fetches."""
    lacking = missing_plugins()
    if not lacking:
        return
    _made(STANDINS["python"])
    target = Path(os.environ.get("DOCKER_CONFIG", Path.home() / ".docker")) / "cli-plugins"
    target.mkdir(parents=True, exist_ok=True)
    packages = " ".join(PLUGINS[name] for name in lacking)
    fetch = (
        f"cd /tmp; apt-get update -qq; apt-get download -qq {packages}; for deb in *.deb; do dpkg-deb -x $deb .; done"
    )
    copy = "cp usr/libexec/docker/cli-plugins/* /into/"
    docker("run", "--rm", f"--volume={target}:/into", PYTHON.tag, "sh", "-ec", f"{fetch}; {copy}", timeout=600)
    assert not missing_plugins(), f"docker has no {' and no '.join(lacking)} with Debian's packages in {target}"


def _made(wanted: StandIn) -> str:
    if wanted.tag in ROOTS:
        _import(ROOTS[wanted.tag])
        return wanted.tag
    for tag in wanted.on:
        _import(ROOTS[tag]) if tag in ROOTS else _made(next(one for one in STANDINS.values() if one.tag == tag))
    recipe = RECIPES / f"{wanted.recipe}.Dockerfile"
    context = _installed(wanted.program) if wanted.program else RECIPES
    docker("build", "--quiet", "--file", recipe, "--tag", wanted.tag, context, timeout=1800)
    return wanted.tag


def _installed(program: str) -> Path:
    """Return the directory into which Go installed a program, and nothing else, whatever the machine's libraries."""
    go = shutil.which("go")
    if go is None:
        raise NoEngineError(f"{program} cannot be built: go is not installed")
    made = ROOT / "build" / "standins" / program.rpartition("/")[2]
    if not made.is_dir():
        made.parent.mkdir(parents=True, exist_ok=True)
        # A folder of that name is whole.
        with tempfile.TemporaryDirectory(dir=made.parent) as scratch:
            environment = {**os.environ, "GOBIN": f"{scratch}/bin", "CGO_ENABLED": "0"}
            done = subprocess.run(  # noqa: S603  # go, with our own versions
                [go, "install", program], env=environment, capture_output=True, text=True, check=False
            )
            if done.returncode:
                raise NoEngineError(f"go install {program} failed: {done.stderr.strip()[-300:]}")
            Path(scratch, "bin").rename(made)
    return made


def _import(root: Root) -> None:
    """Make a root's image, unless it is there, made of the same packages and certificates."""
    authorities = _CERTIFICATE.findall(Path(ssl.get_default_verify_paths().cafile or os.devnull).read_text("utf-8"))
    made_of = hashlib.sha256(repr((root, sorted(authorities))).encode()).hexdigest()
    label = docker("image", "inspect", "--format", '{{index .Config.Labels "made-of"}}', root.tag, check=False).stdout
    if label.strip() == made_of:
        return
    if shutil.which("debootstrap") is None:
        install("debootstrap")
    with tempfile.TemporaryDirectory(prefix="hushcount-root-") as scratch:
        tree = Path(scratch) / "tree"
        packages = ",".join(root.packages)
        _run("debootstrap", "--variant=minbase", f"--include={packages}", root.suite, str(tree), _mirror())
        # Behind a proxy that ends TLS, the machine trusts an authority that Debian does not.
        own = tree / "etc/ssl/certs/ca-certificates.crt"
        for number, added in enumerate(sorted(set(authorities) - set(_CERTIFICATE.findall(own.read_text("utf-8"))))):
            (tree / f"usr/local/share/ca-certificates/machine-{number}.crt").write_text(added, "utf-8")
        _run("chroot", str(tree), "update-ca-certificates")
        for rest in ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/man", "usr/share/locale"):
            shutil.rmtree(tree / rest, ignore_errors=True)
        (tree / "var/cache/apt/archives/partial").mkdir(parents=True)
        archive = Path(scratch) / "tree.tar"
        _run(
            "tar",
            "-C",
            str(tree),
            "--exclude=./proc/*",
            "--exclude=./sys/*",
            "--exclude=./dev/*",
            "-cf",
            str(archive),
            ".",
        )
        docker("import", "--change", f"LABEL made-of={made_of}", "--change", 'CMD ["bash"]', archive, root.tag)


def _mirror() -> str:
    """Return the Debian mirror of this machine's apt, or Debian's own."""
    lists = [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))]
    text = "\n".join(path.read_text("utf-8", "replace") for path in lists if path.is_file())
    found = re.search(r"^(?:URIs:|deb(?: \[.*\])?) +(https?://\S+/debian)/?(?:\s|$)", text, re.MULTILINE)
    return found[1] if found else DEBIAN


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  # Debian's own tools
    assert done.returncode == 0, f"{' '.join(command)}:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
