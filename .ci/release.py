"""Build a release of the committed files into dist/, check it, and say loudly what could not be checked: make release.

Needs the packages of requirements-release.lock, npm and git. Two builds must give the same bytes, else nothing is
released. The moment of all files is SOURCE_DATE_EPOCH, by default the moment of the commit.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import versions

ROOT = Path(__file__).parents[1]
PROJECTS = ("hushcount", "sealed_lanes", ".")
TYPESCRIPT = "clients/typescript"
PARTY = "deploy/images/party.Dockerfile"
IMAGES = ("shuffler", "shuffler-signing", "evaluator", "issuer", "aux-server", "analyzer")
LOCK = "requirements.lock"
MOST_LINES = 40
"""Lines of the notes of a release, which fit on a screen."""


def main() -> None:
    """Build, check and list a release."""
    if wrong := versions.faults(ROOT):
        sys.exit("\n".join(wrong))
    version = versions.version(ROOT)
    os.environ.setdefault("SOURCE_DATE_EPOCH", run("git", "log", "-1", "--format=%ct").strip())
    if run("git", "status", "--porcelain", "--untracked-files=no"):
        print("NOTE: the release is of the last commit: changes that are not committed are NOT in it", flush=True)
    dist = ROOT / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    with tempfile.TemporaryDirectory() as scratch:
        trees = [checkout(Path(scratch) / name) for name in ("one", "two")]
        for tree in trees:
            build(tree, tree / "dist")
        same(*(digests(tree / "dist") for tree in trees))
        shutil.copytree(trees[0] / "dist", dist)
        (dist / "RELEASE.md").write_text(notes((trees[0] / "CHANGELOG.md").read_text("utf-8"), version), "utf-8")
        describe(trees[0], dist / "sbom", version)
        check(trees[0], dist)
        images(trees[0], dist, version)
    lines = [f"{digest}  {name}\n" for name, digest in sorted(digests(dist).items())]
    (dist / "SHA256SUMS").write_text("".join(lines), "utf-8")
    for path in sorted(path for path in dist.rglob("*") if path.is_file()):
        print(f"{path.stat().st_size:>12,}  {path.relative_to(ROOT)}")


def checkout(tree: Path) -> Path:
    """Write the files of the last commit to a directory."""
    tree.mkdir()
    packed = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True).stdout  # noqa: S607  # git of PATH
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(tree, filter="data")
    return tree


def build(tree: Path, dist: Path) -> None:
    """Build all distributions of a tree: wheels and sdists into python/, the package of the web client into npm/."""
    for project in PROJECTS:
        run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(dist / "python"), str(tree / project))
    for sdist in (dist / "python").glob("*.tar.gz"):
        sdist.write_bytes(normal(sdist.read_bytes(), int(os.environ["SOURCE_DATE_EPOCH"])))
    (dist / "npm").mkdir()
    run("npm", "ci", "--no-audit", "--no-fund", "--loglevel=error", cwd=tree / TYPESCRIPT)
    run("npm", "run", "--silent", "build", cwd=tree / TYPESCRIPT)
    run("npm", "pack", "--silent", "--ignore-scripts", "--pack-destination", str(dist / "npm"), cwd=tree / TYPESCRIPT)


def normal(packed: bytes, epoch: int) -> bytes:
    """Return a .tar.gz with the same files in the order of their names, of one moment and of nobody."""
    made = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(packed)) as archive,
        gzip.GzipFile(fileobj=made, mode="wb", mtime=epoch, filename="") as stream,
        tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as into,
    ):
        for member in sorted(archive.getmembers(), key=lambda one: one.name):
            kept = tarfile.TarInfo(member.name)
            kept.type, kept.size, kept.mtime, kept.mode = member.type, member.size, epoch, member.mode & 0o755
            into.addfile(kept, archive.extractfile(member))
    return made.getvalue()


def digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file of a folder, by its path there."""
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def same(one: dict[str, str], other: dict[str, str]) -> None:
    """Exit if two builds differ."""
    different = sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))
    if different:
        sys.exit(f"two builds of one commit differ in {', '.join(different)}: nothing is released")
    print(f"reproducible: two builds gave the same {len(one)} files", flush=True)


def notes(changelog: str, version: str) -> str:
    """Return the notes of a release: the part "In short" of its section of the changelog."""
    section = re.search(rf"^## {re.escape(version)}, .*?(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    short = section and re.search(r"^### In short\n+(.*?)(?=^### |\Z)", section[0], re.MULTILINE | re.DOTALL)
    if not short:
        sys.exit(f'CHANGELOG.md has no "### In short" under "## {version}, ..."')
    text = f"# Hushcount {version}\n\n{short[1].strip()}\n"
    if (lines := text.count("\n")) > MOST_LINES:
        sys.exit(f'"In short" of {version} makes {lines} lines, must be at most {MOST_LINES}')
    return text


def describe(tree: Path, sbom: Path, version: str) -> None:
    """Write what each distribution is made of, as CycloneDX."""
    sbom.mkdir()
    out = str(sbom / f"hushcount-server-{version}.cdx.json")
    program = str(Path(sys.executable).with_name("cyclonedx-py"))
    project = ("--pyproject", str(tree / "pyproject.toml"))
    run(program, "requirements", "--output-reproducible", *project, "--output-file", out, str(tree / LOCK))
    npm = run("npm", "sbom", "--sbom-format", "cyclonedx", "--omit", "dev", cwd=tree / TYPESCRIPT)
    (sbom / f"hushcount-npm-{version}.cdx.json").write_text(npm, "utf-8")


def check(tree: Path, dist: Path) -> None:
    """Check the metadata of all packages, and scan what they depend on for known vulnerabilities."""
    python = [str(path) for path in sorted((dist / "python").iterdir())]
    run(sys.executable, "-m", "twine", "check", "--strict", *python)
    run("npm", "run", "--silent", "package", cwd=tree / TYPESCRIPT)
    print("checked: twine, publint and attw find nothing", flush=True)
    audit = (sys.executable, "-m", "pip_audit", "--disable-pip", "--no-deps", "--progress-spinner=off", "--format=json")
    told(f"pip-audit of {LOCK}", *scanned_python(answer(*audit, "--requirement", str(tree / LOCK))))
    told("npm audit", *scanned_npm(answer("npm", "audit", "--omit=dev", "--json", cwd=tree / TYPESCRIPT)))
    if shutil.which("trivy") is None:
        skipped("trivy", "it is not installed: the files were NOT scanned by it")
    else:
        run("trivy", "fs", "--exit-code=1", "--scanners=vuln,secret", "--quiet", str(tree))


def scanned_python(report: str) -> tuple[list[str], str]:
    """Return the vulnerabilities that pip-audit reports, and why some packages were not scanned, or ""."""
    try:
        packages = json.loads(report)["dependencies"]
    except (ValueError, KeyError):
        return [], "the database of vulnerabilities is out of reach: NOTHING was scanned"
    found = [f"{one['name']} {one['version']}: {bug['id']}" for one in packages for bug in one.get("vulns", ())]
    missed = sum("skip_reason" in one for one in packages)
    return found, f"{missed} of {len(packages)} packages were NOT scanned" if missed else ""


def scanned_npm(report: str) -> tuple[list[str], str]:
    """Return the vulnerabilities that npm audit reports, and why nothing was scanned, or ""."""
    try:
        bugs = json.loads(report)["vulnerabilities"]
    except (ValueError, KeyError):
        return [], "the registry gives no answer: NOTHING was scanned"
    return [f"{name}: {bug['severity']}" for name, bug in bugs.items()], ""


def told(what: str, found: list[str], missed: str) -> None:
    """Exit if a scan found something; say what it missed."""
    if found:
        sys.exit(f"{what} found known vulnerabilities: {', '.join(found)}: renew the lock files")
    if missed:
        skipped(what, missed)
    else:
        print(f"checked: {what} finds nothing", flush=True)


def images(tree: Path, dist: Path, version: str) -> None:
    """Build the parties' images where a Docker engine and their base can be had, and list their ids."""
    base = re.findall(r"^ARG BUILDER=(\S+)$", (tree / PARTY).read_text("utf-8"), re.MULTILINE)[0]
    if shutil.which("docker") is None or not works("docker", "info"):
        skipped("images", "there is no Docker engine: NO image was built")
    elif not works("docker", "pull", "--quiet", base):
        skipped("images", f"their base {base} cannot be pulled: NO image was built")
    else:
        tags = {target: f"hushcount-{target}:{version}" for target in IMAGES}
        for target, tag in tags.items():
            run("docker", "build", "--file", PARTY, "--target", target, "--tag", tag, ".", cwd=tree)
        ids = [f"{run('docker', 'images', '--no-trunc', '--quiet', tag).strip()}  {tag}\n" for tag in tags.values()]
        (dist / "images.txt").write_text("".join(ids), "utf-8")


def skipped(what: str, why: str) -> None:
    """Say what was not done."""
    print(f"SKIPPED: {what}: {why}", flush=True)


def works(*command: str) -> bool:
    """Return whether a command ends with status 0."""
    return ran(*command).returncode == 0


def answer(*command: str, cwd: Path = ROOT) -> str:
    """Return what a command prints, whatever its status."""
    return ran(*command, cwd=cwd).stdout


def run(*command: str, cwd: Path = ROOT) -> str:
    """Return what a command prints; exit with its output if it fails."""
    done = ran(*command, cwd=cwd)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout}\n{done.stderr}")
    return done.stdout


def ran(*command: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, whatever its status."""
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)  # noqa: S603  # our own


if __name__ == "__main__":
    main()
