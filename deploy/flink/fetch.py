"""Fetches the engines that the tests use: Beam's job server for Flink, Flink itself, and Prism.

    python deploy/flink/fetch.py --into build/engines

The script needs mvn and go. The settings of mvn, go and pip name the servers from which each program fetches. Existing
files are not fetched again.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import textwrap
import zipfile
from pathlib import Path

HERE = Path(__file__).parent
FLINK_VERSION = "1.19.3"
PRISM = "github.com/apache/beam/sdks/v2/go/cmd/prism@v2.77.0"
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
MAIN_CLASS = "org.apache.beam.runners.flink.FlinkJobServerDriver"
# Flink's serialisers read private fields of classes in these packages, and Java 17 forbids this by default.
OPENED = ("lang", "lang.reflect", "net", "io", "nio", "text", "time", "util", "util.concurrent")
# With each job, the job server sends all jars of its class path (150 MB) to the cluster, except jars in this directory.
KEPT = Path("job-server-kept/gradle/wrapper")
_LINE_BYTES = 70


def main() -> None:
    """Fetch all engines."""
    parser = argparse.ArgumentParser(description="Fetch Flink, Beam's job server for it, and Prism.")
    parser.add_argument("--into", type=Path, default=Path("build/engines"), help="Target directory.")
    into: Path = parser.parse_args().into.absolute()
    into.mkdir(parents=True, exist_ok=True)
    wanted = {
        "job-server.jar": fetch_job_server,
        "job-server-light.jar": make_light_job_server,
        "flink": fetch_flink,
        "prism": fetch_prism,
    }
    for what, fetch in wanted.items():
        if not (into / what).exists():
            fetch(into)
        print(into / what)  # noqa: T201  # what a script says


def fetch_job_server(into: Path) -> None:
    """Write job-server.jar, for `java -jar`, and beside it the jars that it names."""
    libraries = into / "job-server-lib"
    shutil.rmtree(libraries, ignore_errors=True)
    run(
        "mvn", "--quiet", "--batch-mode", "--file", HERE / "pom.xml", COPY,
        f"-DoutputDirectory={libraries}", "-DincludeScope=runtime",
    )  # fmt: skip
    write_starter(into / "job-server.jar", libraries)


def make_light_job_server(into: Path) -> None:
    """Write job-server-light.jar: the same job server, but it sends no jars, for a cluster that has Beam's jars."""
    kept = into / KEPT
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    for jar in (into / "job-server-lib").iterdir():
        # A hard link and not a symbolic link, because Beam would follow a symbolic link.
        os.link(jar, kept / jar.name)
    write_starter(into / "job-server-light.jar", kept)


def write_starter(target: Path, libraries: Path) -> None:
    """Write a jar that only names other jars, by paths relative to its own directory."""
    opened = " ".join(f"java.base/java.{package}" for package in OPENED)
    paths = " ".join(str(jar.relative_to(target.parent)) for jar in sorted(libraries.iterdir()))
    lines = ("Manifest-Version: 1.0", f"Main-Class: {MAIN_CLASS}", f"Add-Opens: {opened}", f"Class-Path: {paths}")
    with zipfile.ZipFile(target, "w") as jar:
        jar.writestr("META-INF/MANIFEST.MF", "".join(f"{folded(line)}\n" for line in lines))


def folded(line: str) -> str:
    """Split a manifest's line into several, because a line may have at most 72 bytes."""
    return "\n ".join(line[start : start + _LINE_BYTES] for start in range(0, len(line), _LINE_BYTES))


def fetch_flink(into: Path) -> None:
    """Write flink/, the jars of Flink's distribution."""
    with tempfile.TemporaryDirectory(dir=into) as scratch:
        wanted = f"apache-flink-libraries=={FLINK_VERSION}"
        run(
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--no-binary",
            ":all:",
            "-d",
            scratch,
            wanted,
        )
        (archive,) = Path(scratch).glob("*.tar.gz")
        made = Path(scratch) / "flink"
        made.mkdir()
        with tarfile.open(archive) as stream:
            for member in stream:
                parts = Path(member.name).parts
                if parts[1:3] == ("deps", "lib") and member.isfile():
                    source = stream.extractfile(member)
                    if source is not None:
                        with source, (made / parts[-1]).open("xb") as target:
                            shutil.copyfileobj(source, target)
        made.rename(into / "flink")


def fetch_prism(into: Path) -> None:
    """Write the program prism."""
    run("go", "install", PRISM, GOBIN=str(into))


def run(program: str | Path, *arguments: str | Path, **environment: str) -> None:
    """Run a program; if it is missing or fails, exit with one sentence."""
    found = shutil.which(program)
    if found is None:
        sys.exit(f"error: {program} is not on PATH: install it, it is needed to fetch the engines")
    command = [found, *map(str, arguments)]
    ended = subprocess.run(  # noqa: S603  # as a user would call them
        command, env={**os.environ, **environment}, stdout=sys.stderr, check=False
    )
    if ended.returncode:
        shown = textwrap.shorten(" ".join(command), 200)
        sys.exit(f"error: {shown} ended with status {ended.returncode}: its output above says why")


if __name__ == "__main__":
    main()
