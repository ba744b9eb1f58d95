"""A Flink cluster of containers, each as its pod in deploy/kubernetes/engine says.

with cluster(images, directory, keys) as flink:
    flink.hushcount("shuffler", "job", "shuffle", ..., *flink.options("shuffler"))
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from docker.types import Mount
from testcontainers.core.container import DockerContainer
from testcontainers.core.network import Network
from testcontainers.core.wait_strategies import LogMessageWaitStrategy

from hushcount.formats.reading import parse_toml
from tests.containers.engine import docker
from tests.containers.pods import MANIFESTS, Volume, named, restricted, spec_of, volume

DATA = Path("/data")
"""Stands for the parties' stores: a volume that commands and workers have."""
POOLS: Mapping[str, int] = {"analyzer": 50000, "shuffler": 50001, "aux-server": 50002}
"""Ports of the parties' workers. In production each party has a cluster of its own; here the three share one."""
_START_SECONDS = 300
_JOB_SECONDS = 600.0


def settings(directory: Path) -> Path:
    """Write the file that Flink's operator makes of the manifest, with the addresses of this cluster."""
    spec = spec_of("engine/flink.yaml")
    values = {
        **spec["flinkConfiguration"],
        "jobmanager.rpc.address": "flink",
        "rest.bind-address": "0.0.0.0",  # noqa: S104  # of a container on a network without a way out
        "jobmanager.memory.process.size": spec["jobManager"]["resource"]["memory"],
        "taskmanager.memory.process.size": spec["taskManager"]["resource"]["memory"],
        # All parts share the cores of this machine, so one may answer late; the manifests give each its own.
        "pekko.ask.timeout": "60 s",
    }
    path = directory / "config.yaml"
    path.write_text(yaml.safe_dump(values, width=10_000))
    path.chmod(0o644)
    return path


@dataclass
class Flink:
    """A running cluster.

    Attributes:
        images: tags by name.
        network: on which commands reach the job server, and nothing else.
        work: the volume between job server and Flink.
        data: what DATA is.
        keys: the private key of each party that opens, as its variable holds it.
        parts: containers by name, in the order in which they were started.
    """

    images: Mapping[str, str]
    network: Network
    work: Volume
    data: Volume
    keys: Mapping[str, str]
    parts: dict[str, DockerContainer] = field(default_factory=dict)

    @property
    def _pool(self) -> DockerContainer:
        """A container that is never killed, and has both the network and DATA."""
        return self.parts["task-manager-0-analyzer"]

    def ask(self, path: str) -> Any:
        """Return what the JobManager's REST interface answers, from within the network."""
        url = f"http://flink-rest:8081{path}"
        ask = f"import urllib.request; print(urllib.request.urlopen('{url}', timeout=10).read().decode())"
        answer = self._pool.exec(["python", "-c", ask])
        if answer.exit_code:
            raise OSError(answer.output.decode(errors="replace"))
        return json.loads(answer.output)

    def wait_until(self, condition: Callable[[], object], what: str, seconds: float = _START_SECONDS) -> None:
        """Wait until a condition holds; an OSError in it means not yet. The logs are in the failure."""
        end = time.monotonic() + seconds
        while True:
            try:
                if condition():
                    return
            except OSError:
                pass
            assert time.monotonic() < end, f"{what}: not within {seconds} s\n{self.logs()}"
            time.sleep(0.3)

    def met(self) -> bool:
        """Return whether as many TaskManagers as the manifest has are there."""
        return bool(self.ask("/overview")["taskmanagers"] == spec_of("engine/flink.yaml")["taskManager"]["replicas"])

    def options(self, party: str) -> tuple[str, ...]:
        """Return the options of the party's deployment file, with the port of its workers here."""
        file = MANIFESTS / party / "deployment.toml"
        engine = parse_toml(file.read_bytes(), str(file))["engine"]
        pool = f"--environment_config=localhost:{POOLS[party]}"
        others = [one for one in engine["options"] if not one.startswith("--environment_config=")]
        return ("--runner", engine["runner"], "--", *others, pool)

    @contextmanager
    def started(self, party: str, *words: object) -> Iterator[DockerContainer]:
        """Start a command in the image and within the limits of the party's schedule; remove it after the block."""
        pod = spec_of("engine/schedule.yaml")["jobTemplate"]["spec"]["template"]["spec"]
        run = named(pod["containers"], "run")
        kwargs = restricted(pod, run, {})
        command = DockerContainer(self.images[party], network=self.network, env=_key(self.keys, party))
        command.with_command([str(word) for word in words])
        kwargs["mounts"].append(Mount(str(DATA), self.data.name))
        with command.with_kwargs(**kwargs):
            yield command

    def ended(self, command: DockerContainer, status: int = 0, seconds: float = _JOB_SECONDS) -> str:
        """Wait for a command to end with this status, and return what it printed."""
        self.wait_until(lambda: _reloaded(command) == "exited", "the command has not ended", seconds)
        out, err = (part.decode(errors="replace") for part in command.get_logs())
        assert command.wait() == status, f"{out}\n{err}\n{self.logs()}"
        return out

    def hushcount(self, party: str, *words: object) -> str:
        """Run a command to its end, and return what it printed."""
        with self.started(party, *words) as command:
            return self.ended(command)

    def holds(self, name: str) -> bool:
        """Return whether a file or folder is in DATA."""
        return self._pool.exec(["test", "-e", str(DATA / name)]).exit_code == 0

    def kill(self, name: str) -> None:
        """Kill a TaskManager and the pools in its network by SIGKILL, and start them anew, as Kubernetes does."""
        pod = [one.get_container_id() for part, one in self.parts.items() if part.startswith(name)]
        docker("kill", *pod)
        for one in pod:
            docker("start", one)

    def logs(self) -> str:
        """Return the last lines of every part."""
        text = ""
        for name, part in self.parts.items():
            tail = docker("logs", "--tail=60", part.get_container_id(), check=False)
            text += f"--- {name}\n{tail.stdout}{tail.stderr}\n"
        return text


def _key(keys: Mapping[str, str], party: str) -> dict[str, str]:
    return {"HUSHCOUNT_KEYS": keys[party]} if party in keys else {}


def _reloaded(container: DockerContainer) -> str:
    container.reload()
    return container.status


@contextmanager
def cluster(images: Mapping[str, str], directory: Path, keys: Mapping[str, str]) -> Iterator[Flink]:
    """Start the cluster of the manifests, with workers of all parties beside each TaskManager, and remove it after.

    Args:
        images: tags by name.
        directory: existing directory for Flink's settings.
        keys: what `--keys env:HUSHCOUNT_KEYS` finds, by party.
    """
    config = settings(directory)
    with ExitStack() as stack:
        # Neither has a way out. Commands reach the job server only, and it reaches Flink: engine/network.yaml.
        inner, outer = (
            stack.enter_context(Network(docker_network_kw={"internal": True, "check_duplicate": True})) for _ in "io"
        )
        work, data = (stack.enter_context(volume(images["analyzer"])) for _ in "io")
        made = Flink(images, outer, work, data, keys)
        for name, part in _parts(made, inner, config):
            made.parts[name] = stack.enter_context(part)
        outer.connect(made.parts["job-server"].get_container_id(), ["job-server"])
        made.wait_until(made.met, "Flink's TaskManagers have not met")
        yield made


def _parts(made: Flink, inner: Network, config: Path) -> Iterator[tuple[str, DockerContainer]]:
    """Yield the containers by name, each before it is started."""
    spec, work = spec_of("engine/flink.yaml"), {"work": made.work.name}
    pod = spec["podTemplate"]["spec"]
    main = named(pod["containers"], "flink-main-container")
    # Kubernetes starts a container again that ended by itself.
    again = {"restart_policy": {"Name": "on-failure"}}
    mounted = (str(config), "/opt/flink/conf/config.yaml", "ro")

    def flink(role: str, resource: str, **network: str) -> DockerContainer:
        kwargs = restricted(pod, main, work, spec[resource]["resource"]["memory"])
        part = DockerContainer(made.images["flink"], command=[role], volumes=[mounted])
        return part.with_kwargs(**kwargs, **again, **network)

    yield (
        "job-manager",
        flink("jobmanager", "jobManager").with_network(inner).with_network_aliases("flink", "flink-rest"),
    )
    workers = named(spec["taskManager"]["podTemplate"]["spec"]["containers"], "python-workers")
    for number in range(spec["taskManager"]["replicas"]):
        name = f"task-manager-{number}"
        # As in a pod, the network is nobody's who may be killed, and to each the others are on localhost.
        holder = DockerContainer(made.images["analyzer"], command=["infinity"], network=inner)
        yield f"network-{number}", holder.with_kwargs(entrypoint="sleep")
        together = f"container:{made.parts[f'network-{number}'].get_container_id()}"
        yield name, flink("taskmanager", "taskManager", network_mode=together)
        for party, port in POOLS.items():
            kwargs = restricted(pod, workers, {})
            kwargs["mounts"].append(Mount(str(DATA), made.data.name))
            pool = DockerContainer(made.images[f"{party}-worker"], env=_key(made.keys, party))
            yield (
                f"{name}-{party}",
                pool.with_command([f"--service_port={port}"]).with_kwargs(**kwargs, **again, network_mode=together),
            )
    pod = spec_of("engine/job-server.yaml")["template"]["spec"]
    server = named(pod["containers"], "job-server")
    part = DockerContainer(made.images["job-server"], command=server["args"], network=inner)
    part.with_network_aliases("job-server")
    part.with_kwargs(**restricted(pod, server, work), **again)
    waiting = LogMessageWaitStrategy("JobService started").with_startup_timeout(_START_SECONDS)
    yield "job-server", part.waiting_for(waiting)
