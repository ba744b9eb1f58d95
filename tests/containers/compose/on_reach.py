"""What each container reaches and may do, by trying. Each probe succeeds somewhere: no failure is the probe's own."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from ipaddress import ip_network
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.containers.deployment import KEY_DIRECTORIES, Site
from tests.containers.engine import docker

Found = TypeVar("Found")
PROBES = (Path(__file__).parent / "probes.py").read_text(encoding="utf-8")
NETWORKS: Mapping[str, frozenset[str]] = {
    "proxy": frozenset({"outside", "front"}),
    "collector": frozenset({"front"}),
    "shuffler": frozenset(),
    "shuffler-hand-on": frozenset(),
    "aux-server": frozenset(),
    "aux-server-hand-on": frozenset(),
    "analyzer": frozenset(),
}
"""Which networks each container is in; whoever shares one is reached."""
IMAGE = "hushcount-shuffler:0.1.0"
OURS = ("collector", "shuffler", "shuffler-hand-on", "aux-server", "aux-server-hand-on", "analyzer")
"""What runs from our images, and has a Python to try with."""
GREETER = 9797
"""A port in the network of each container at which its name is said, because most schedules listen at none."""
GREETS = """
import socket, sys
listener = socket.create_server(("", int(sys.argv[1])))
while True:
    with listener.accept()[0] as caller:
        caller.sendall(sys.argv[2].encode())
"""
MACHINE = "this machine"
TMP = "/tmp"  # noqa: S108  # a container's own
STATE, STORE = "/var/lib/hushcount/state", "/var/lib/hushcount/store"
VOLUMES: Mapping[str, tuple[str, ...]] = {
    "collector": ("/var/lib/hushcount/journal", f"{STORE}/segments"),
    "shuffler": (
        STATE, *(f"{STORE}/{name}" for name in ("attempts", "log", "segments", "shuffled", "stated/shuffler"))
    ),
    "shuffler-hand-on": ("/to-analyzer", "/to-aux-server", f"{STORE}/receipts"),
    "aux-server": (
        STATE,
        *(
            f"{STORE}/{name}"
            for name in ("attempts", "log", "mixed", "receipts/aux-server", "released", "stated/aux-server")
        ),
    ),
    "aux-server-hand-on": ("/released-to-analyzer", f"{STORE}/receipts/analyzer"),
    "analyzer": (
        STATE,
        *(f"{STORE}/{name}" for name in ("attempts", "estimates", "found", "log", "receipts/analyzer", "results")),
    ),
}  # fmt: skip
"""Where a container can write, besides /tmp."""


class Reach:
    """Probes in the containers of a deployment."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self._inspected = {
            service: json.loads(docker("inspect", site.container(service)).stdout)[0] for service in NETWORKS
        }

    def probe(self, service: str, name: str, *arguments: object) -> Any:
        """Run a probe in a container; where that has no Python, in another one with the same network."""
        command = ["python", "-", name, json.dumps(arguments)]
        if service in OURS:
            done = docker("exec", "--interactive", self.site.container(service), *command, stdin=PROBES)
        else:
            done = outside(*command, network=f"container:{self.site.container(service)}")
        return json.loads(done.stdout)

    def addresses(self, service: str) -> dict[str, str]:
        """Return a container's address in each of its networks."""
        found = self.settings(service)["NetworkSettings"]["Networks"]
        return {
            name.removeprefix(f"{self.site.project}_"): network["IPAddress"]
            for name, network in found.items()
            # The network of those that reach nobody has no addresses.
            if network["IPAddress"]
        }

    def settings(self, service: str) -> dict[str, Any]:
        """Return what the engine says of a container."""
        found = self._inspected[service]
        assert isinstance(found, dict)
        return found


def outside(*command: str, network: str = "bridge") -> Any:
    """Run a Python command in a container of another network, from an image of ours."""
    return docker("run", "--rm", "--interactive", f"--network={network}", *_python(*command), stdin=PROBES)


def _python(*command: str) -> tuple[str, ...]:
    return ("--entrypoint", command[0], IMAGE, *command[1:])


@pytest.fixture(scope="module")
def reach(site: Site) -> Reach:
    return Reach(site)


@pytest.fixture(scope="module")
def greeters(reach: Reach) -> Iterator[None]:
    """In the network of each container, somebody who says its name to whoever connects."""
    names = {service: f"{reach.site.container(service)}-greeter" for service in NETWORKS}
    try:
        for service, name in names.items():
            where = (f"--network=container:{reach.site.container(service)}", f"--name={name}")
            docker("run", "--detach", "--rm", "--init", *where, *_python("python", "-c", GREETS, str(GREETER), service))
        yield
    finally:
        docker("rm", "--force", *names.values(), check=False)


@pytest.fixture(scope="module")
def machine() -> Iterator[int]:
    """Yield a port at which this machine says what it is, at any of its addresses."""
    with socket.create_server(("", 0)) as listener:
        threading.Thread(target=_greet, args=(listener,), daemon=True).start()
        yield listener.getsockname()[1]


def _greet(listener: socket.socket) -> None:
    with suppress(OSError):
        while True:
            with listener.accept()[0] as caller:
                caller.sendall(MACHINE.encode())


@pytest.mark.usefixtures("greeters")
def test_who_shares_no_network_reaches_nobody(reach: Reach) -> None:
    """The analyzer reaches no collector, no party another one, and nobody but the proxy is reached from outside.

    Something on the way may take every connection: who is reached says a name.
    """
    for service, (near, far, found) in everywhere(lambda service: _found_by(reach, service)).items():
        # That some are reached shows that the others would be.
        assert {address: found[address] for address in near} == near, service
        assert not {found[address] for address in far} & set(NETWORKS), (service, far)
    everybody = [[address, GREETER] for other in NETWORKS for address in reach.addresses(other).values()]
    found = json.loads(outside("python", "-", "greetings", json.dumps(everybody)).stdout)
    assert not set(found) & set(NETWORKS), found


def _found_by(reach: Reach, service: str) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    """Return who is at the addresses in and outside a container's networks, and who says a name there."""
    near: dict[str, str] = {}
    far: dict[str, str] = {}
    for other in set(NETWORKS) - {service}:
        shared = NETWORKS[service] & NETWORKS[other]
        for network, address in reach.addresses(other).items():
            # By a network that both are in, a container answers for its other addresses too.
            if network in shared or not shared:
                (near if shared else far)[address] = other
    addresses = [*near, *far]
    said = reach.probe(service, "greetings", *((address, GREETER) for address in addresses))
    return near, far, dict(zip(addresses, said, strict=True))


def everywhere(ask: Callable[[str], Found], services: Collection[str] = NETWORKS) -> dict[str, Found]:
    """Ask in containers at once: most of the time a probe waits for nobody to answer."""
    with ThreadPoolExecutor() as threads:
        return dict(zip(services, threads.map(ask, services), strict=True))


def test_containers_are_in_the_networks_that_the_documentation_says(reach: Reach) -> None:
    assert {service: frozenset(reach.addresses(service)) for service in NETWORKS} == NETWORKS


def test_only_the_proxy_has_a_way_out_of_the_machine(reach: Reach, machine: int) -> None:
    """This machine is reached at none of its addresses; it is what a container must pass to reach the world."""
    networks = json.loads(docker("network", "inspect", "bridge", *_networks(reach)).stdout)
    gateways = [str(next(ip_network(network["IPAM"]["Config"][0]["Subnet"]).hosts())) for network in networks]
    places = [(address, machine) for address in (*gateways, _own_address())]
    heard = everywhere(lambda service: reach.probe(service, "greetings", *places))
    # The proxy calls the world, so it reaches the machine too: the others would, if they could.
    assert {service for service, said in heard.items() if MACHINE in said} == {"proxy"}


def test_nobody_but_the_proxy_asks_for_names_of_the_world(reach: Reach) -> None:
    """A question for a name is a message to whoever answers for it."""
    name = "deb.debian.org"
    if not reach.probe("proxy", "resolves", name):
        pytest.skip(f"this machine does not resolve {name}: that containers cannot was NOT shown")
    assert reach.probe("collector", "resolves", "proxy")
    resolved = everywhere(lambda service: reach.probe(service, "resolves", name))
    assert {service for service, found in resolved.items() if found} == {"proxy"}


def _networks(reach: Reach) -> list[str]:
    return [f"{reach.site.project}_{name}" for name in sorted(frozenset().union(*NETWORKS.values()))]


def _own_address() -> str:
    """Return an address of this machine that is none of the engine's."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        # Nothing is sent.
        asked.connect(("192.0.2.1", 9))
        return str(asked.getsockname()[0])


def test_only_the_proxy_is_published_and_it_forwards_the_interface_alone(reach: Reach) -> None:
    published = {service: reach.settings(service)["HostConfig"]["PortBindings"] for service in NETWORKS}
    assert {service for service, ports in published.items() if ports} == {"proxy"}
    assert [one["HostIp"] for ports in published["proxy"].values() for one in ports] == ["127.0.0.1"]


def test_the_auxiliary_server_finds_no_hash_key_and_no_key_of_others_in_any_file(reach: Reach) -> None:
    directory = reach.site.directory
    hash_key = re.findall(r'"hash_key": "([0-9a-f]{64})"', (directory / "campaign.json").read_text(encoding="utf-8"))
    secrets = {
        "campaign": hash_key[0],
        **{key.removesuffix("-keys"): _secret(directory, key) for key in KEY_DIRECTORIES},
    }
    allowed = {
        "shuffler": {"shuffler"},
        "shuffler-hand-on": set(),
        "aux-server": {"aux-server", "aux-signer"},
        "aux-server-hand-on": set(),
        "analyzer": {"analyzer", "analyzer-signer", "campaign"},
        # It hands campaign files to clients.
        "collector": {"campaign"},
    }
    found = everywhere(lambda service: reach.probe(service, "held", *secrets.values()), allowed)
    for service, held in allowed.items():
        assert {name for name, secret in secrets.items() if secret in found[service]} == held, (service, found)


def _secret(directory: Path, key: str) -> str:
    """Return a private key, which only its container's user may read."""
    mounted = f"--volume={directory}:/site:ro"
    told = docker("run", "--rm", "--user=0:0", mounted, "--entrypoint=sh", IMAGE, "-c",
                  f"cat /site/{key}/*.key")  # fmt: skip
    return str(json.loads(told.stdout)["secret"])


@pytest.mark.parametrize("service", OURS)
def test_a_container_of_ours_may_do_nothing_more_than_it_must(reach: Reach, service: str) -> None:
    assert reach.probe(service, "restrictions") == {
        "Uid": "\t".join(["10001"] * 4),
        "Gid": "\t".join(["10001"] * 4),
        # The engine lists the user's own group here too.
        "Groups": "10001",
        **dict.fromkeys(("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"), "0" * 16),
        "NoNewPrivs": "1",
        "Seccomp": "2",
    }
    # What it can write shows that the others fail because they are read-only.
    assert reach.probe(service, "writable") == sorted([TMP, *VOLUMES[service]])
    assert reach.probe(service, "sockets") == []


@pytest.mark.parametrize("service", sorted(NETWORKS))
def test_every_container_is_confined_and_has_its_limits(reach: Reach, service: str) -> None:
    settings = reach.settings(service)["HostConfig"]
    assert settings["ReadonlyRootfs"]
    assert not settings["Privileged"]
    assert "no-new-privileges:true" in settings["SecurityOpt"]
    assert settings["CapDrop"] == ["ALL"]
    assert settings["Memory"] > 0
    assert 0 < settings["PidsLimit"] <= 512
    assert settings["PidMode"] == settings["UTSMode"] == settings["UsernsMode"] == ""
