"""Build images from the recipes that users build them from, and look into each layer for secrets: make containers.

Base images that cannot be pulled are replaced by stand-ins, and named. Layers are cached: a second run takes seconds.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from hushcount import __version__
from tests.containers.engine import NoEngineError, docker, ensure_engine
from tests.containers.layers import search
from tests.containers.standins import ROOT, base, ensure_plugins

VERSION = __version__
PARTIES = ("shuffler", "shuffler-signing", "evaluator", "issuer", "aux-server", "analyzer")
EXTRAS = "aws"
PARTY = "deploy/images/party.Dockerfile"
S3 = "versity/versitygw:v1.8.0"
"""A server of S3, which only tests start."""
_NAMED = (ROOT / "deploy" / "compose" / "compose.yaml").read_text("utf-8")
_FLINK = (ROOT / "deploy" / "kubernetes" / "engine" / "flink.yaml").read_text("utf-8")
SERVICES = {
    "parties": {"caddy": re.findall(r"\$\{CADDY_IMAGE:-([^}]+)\}", _NAMED)[0]},
    "flink": {"flink": re.findall(r"image: (flink:\S+)", _FLINK)[0]},
    "dataflow": {},
}
"""What runs beside our images of each group, as compose files and manifests name it."""
_SECONDS = 3600


@dataclass(frozen=True)
class Image:
    """One image of ours.

    Attributes:
        name: What follows `hushcount-` in its tag.
        file: Its recipe, below the checkout.
        bases: The stand-in for each base that is an argument of the recipe.
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
        """Return the image that the recipe names for one of its arguments, or nothing."""
        found = re.findall(rf"^ARG {argument}=(\S+)$", (ROOT / self.file).read_text("utf-8"), re.MULTILINE)
        return str(found[0]) if found else ""

    def build(self, bases: dict[str, str]) -> None:
        """Build it; its tag changes when that succeeded."""
        arguments = {**self.arguments, **{argument: bases[name] for argument, name in self.bases.items()}}
        words = [f"--build-arg={name}={value}" for name, value in arguments.items()]
        words += [f"--target={self.target}"] if self.target else []
        docker("build", "--quiet", *words, "--file", ROOT / self.file, "--tag", self.tag, ROOT, timeout=_SECONDS)


def images(*groups: str) -> Iterator[Image]:
    """Yield our images of some groups, each after those that it is made from; without any, of all."""
    wanted = groups or tuple(SERVICES)
    bases = {"BASE": "python", "BUILDER": "builder"}
    if "parties" in wanted:
        for party in PARTIES:
            yield Image(party, PARTY, party, bases, {"EXTRAS": EXTRAS})
    if "flink" in wanted:
        yield Image("job-server", "deploy/images/job-server.Dockerfile", "", {"MAVEN": "maven", "JAVA": "java"})
        for party in ("shuffler", "aux-server", "analyzer"):
            arguments = {"PARTY": f"hushcount-{party}:{VERSION}"}
            yield Image(f"{party}-worker", "deploy/images/flink-worker.Dockerfile", arguments=arguments)
    if "dataflow" in wanted:
        yield Image("analyzer-gcp", PARTY, "analyzer", bases, {"EXTRAS": "gcp"})
        arguments = {"PARTY": f"hushcount-analyzer-gcp:{VERSION}"}
        yield Image("dataflow", "deploy/dataflow/Dockerfile", "", {"SDK": "sdk", "LAUNCHER": "launcher"}, arguments)


def build_all(say: Callable[[str], object], *groups: str) -> dict[str, str]:
    """Build what is not built yet; return the tags of our images and of the others by name.

    Args:
        say: Told each image, and each base that a stand-in replaces.
        groups: Of SERVICES: which images; without any, all. Those of "flink" are made from those of "parties".

    Raises:
        NoEngineError: There is no engine, and none can be started.
        AssertionError: An image cannot be built; the text is the builder's.
    """
    ensure_engine()
    ensure_plugins()
    made: dict[str, str] = {}

    def found(name: str, published: str) -> None:
        if name not in made:
            made[name] = base(name, published)
            if made[name] != published:
                say(
                    f"STAND-IN: {made[name]} for {published or 'what the recipe lets you name'}, which cannot be pulled"
                )

    for image in images(*groups):
        for argument, name in image.bases.items():
            found(name, image.published(argument))
        begun = time.monotonic()
        image.build(made)
        say(f"built {image.tag} in {time.monotonic() - begun:.0f} s")
        made[image.name] = image.tag
    for group in groups or SERVICES:
        for name, published in SERVICES[group].items():
            found(name, published)
    return made


def size(tag: str) -> int:
    """Return an image's size in bytes, its base included."""
    return int(docker("image", "inspect", "--format", "{{.Size}}", tag).stdout)


def main(groups: Sequence[str]) -> int:
    """Build images, search all layers of ours, and print the sizes; the status is 1 if a secret was found."""
    try:
        made = build_all(lambda line: print(line, flush=True), *groups)
    except NoEngineError as error:
        print(f"SKIPPED: {error}: the images were NOT built", file=sys.stderr)
        return 1
    ours = [image.tag for image in images(*groups)]
    secrets = search(ours)
    for finding in secrets:
        print(f"SECRET: {finding}", file=sys.stderr)
    for tag in [*ours, *sorted({tag for tag in made.values() if tag not in ours})]:
        print(f"{tag:40} {size(tag) / 2**20:6.0f} MiB")
    print(f"secrets and stray files in the layers of {len(ours)} images: {len(secrets) or 'none'}")
    return int(bool(secrets))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
