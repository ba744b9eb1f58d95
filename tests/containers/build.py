"""Build all images from the recipes that users build them from: make containers.

Base images that cannot be pulled are replaced by stand-ins, and named. Layers are cached: a second run takes seconds.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tests.containers.engine import NoEngineError, docker, ensure_engine
from tests.containers.standins import ROOT, base, ensure_plugins

VERSION = "0.1.0"
PARTIES = ("shuffler", "shuffler-signing", "evaluator", "aux-server", "analyzer")
EXTRAS = "aws postgres"
_SECONDS = 3600


@dataclass(frozen=True)
class Image:
    """One image of ours.

    Attributes:
        name: What follows `hushcount-` in its tag.
        file: Its recipe, below the checkout.
        bases: The names of the stand-ins for the recipe's arguments.
        arguments: Other build arguments.
    """

    name: str
    file: str
    target: str = ""
    bases: dict[str, str] = field(default_factory=dict)
    arguments: dict[str, str] = field(default_factory=dict)

    @property
    def tag(self) -> str:
        return f"hushcount-{self.name}:{VERSION}"

    def published(self, argument: str) -> str:
        """Return the image that the recipe names for one of its arguments."""
        (found,) = re.findall(rf"^ARG {argument}=(\S+)$", (ROOT / self.file).read_text("utf-8"), re.MULTILINE)
        return str(found)


def images() -> Iterable[Image]:
    """Yield our images, each after those that it is made from."""
    for party in PARTIES:
        bases = {"BASE": "python", "BUILDER": "builder"}
        yield Image(party, "deploy/images/party.Dockerfile", party, bases, {"EXTRAS": EXTRAS})
    yield Image("job-server", "deploy/images/job-server.Dockerfile", "", {"MAVEN": "maven", "JAVA": "java"})
    for party in ("shuffler", "aux-server", "analyzer"):
        arguments = {"PARTY": f"hushcount-{party}:{VERSION}"}
        yield Image(f"{party}-worker", "deploy/images/flink-worker.Dockerfile", arguments=arguments)


def build_all(say: Callable[[str], object]) -> dict[str, str]:
    """Build what is not built yet; return the tags of ours by name, and of the stand-ins or published images by theirs.

    Args:
        say: Told each step, and each base that a stand-in replaces.

    Raises:
        NoEngineError: There is no engine, and none can be started.
        AssertionError: An image cannot be built; the text is the builder's.
    """
    ensure_engine()
    ensure_plugins()
    made: dict[str, str] = {}
    for image in images():
        arguments = dict(image.arguments)
        for argument, name in image.bases.items():
            published = image.published(argument)
            if name not in made:
                made[name] = base(name, published)
                if made[name] != published:
                    say(f"STAND-IN: {made[name]} for {published}, which cannot be pulled")
            arguments[argument] = made[name]
        begun = time.monotonic()
        words = [f"--build-arg={name}={value}" for name, value in arguments.items()]
        words += [f"--target={image.target}"] if image.target else []
        docker("build", "--quiet", *words, "--file", ROOT / image.file, "--tag", image.tag, ROOT, timeout=_SECONDS)
        say(f"built {image.tag} in {time.monotonic() - begun:.0f} s")
        made[image.name] = image.tag
    for name, published in SERVICES.items():
        made[name] = base(name, published)
        if made[name] != published:
            say(f"STAND-IN: {made[name]} for {published}, which cannot be pulled")
    return made


COMPOSE = ROOT / "deploy" / "compose"
SERVICES = {
    name: re.findall(rf"\$\{{{name.upper()}_IMAGE:-([^}}]+)\}}", "".join(map(Path.read_text, COMPOSE.glob("*.yaml"))))[
        0
    ]
    for name in ("caddy", "postgres", "s3")
}
"""What compose files use beside our images, as they name it."""


def main() -> int:
    """Build all, and print what was built and how large it is."""
    argparse.ArgumentParser(description="Build all images of Hushcount, on published bases or stand-ins.").parse_args()
    try:
        made = build_all(lambda line: print(line, flush=True))
    except NoEngineError as error:
        print(f"SKIPPED: {error}: the images were NOT built", file=sys.stderr)
        return 1
    for tag in sorted(set(made.values())):
        size = int(docker("image", "inspect", "--format", "{{.Size}}", tag).stdout)
        print(f"{tag:44} {size / 2**20:7.0f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
