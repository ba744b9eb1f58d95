"""Runs a Flink cluster on this machine, in processes: JobManager, TaskManagers, Beam's job server, Python workers.

    python deploy/flink/cluster.py --engines build/engines

starts them, prints the options that send a job to the cluster, and stops all on Ctrl-C. For trials and tests only:
nothing is encrypted, and everybody who reaches the ports on this machine can use them.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_OPENED = (
    "lang",
    "lang.reflect",
    "net",
    "io",
    "nio",
    "text",
    "time",
    "util",
    "util.concurrent",
    "util.concurrent.atomic",
)
_NO_NATIVE = "-Dorg.apache.beam.vendor.grpc.v1p60p1.io.netty.transport.noNative=true"
"""Every job loads its own copy of Beam's network library, but all copies share one native part. When Java unloads one
copy, the native part is unloaded too. Then the servers that a later job's workers call stop, so the later job waits for
ever. Without the native part, the copies share nothing."""
_JAVA_OPTIONS = (*(f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in _OPENED), _NO_NATIVE)
_JOB_MANAGER = "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint"
_TASK_MANAGER = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"
# These jars of the job server are not on the class path, because Flink's distribution has its own flink-* jars and
# logger.
_NOT_BEAM = ("flink-", "slf4j-simple")
_START_SECONDS = 90
_STOP_SECONDS = 10
WORKER = Path(__file__).parent.absolute() / "worker.py"
REAPER = WORKER.with_name("reaper.py")
POOL = WORKER.with_name("pool.py")


@dataclass(frozen=True)
class Cluster:
    """A running Flink.

    Attributes:
        rest: host:port of the JobManager's REST interface.
        job_manager: process of the JobManager.
        task_managers: processes of the TaskManagers, by name.
    """

    rest: str
    job_manager: subprocess.Popen[bytes]
    task_managers: dict[str, subprocess.Popen[bytes]]

    def ask(self, path: str) -> Any:
        """Return the REST interface's answer, as JSON data."""
        with urllib.request.urlopen(f"http://{self.rest}{path}", timeout=10) as answer:
            return json.load(answer)


@contextmanager
def flink(
    engines: Path, directory: Path, task_managers: int = 2, slots: int = 2, restarts: int = 0
) -> Iterator[Cluster]:
    """Start a JobManager and TaskManagers, yield when all TaskManagers have registered, and stop them.

    Args:
        engines: directory that fetch.py filled. Beam's jars are on the class path, so a job from job-server-light.jar
            needs no jars.
        directory: existing directory for settings and logs.
        task_managers: number of TaskManager processes.
        slots: number of parallel tasks of each TaskManager.
        restarts: how often a failed job is restarted.

    Raises:
        RuntimeError: the TaskManagers did not register; the message names the logs.
    """
    rest, rpc = free_port(), free_port()
    settings = {
        "jobmanager.rpc.address": "localhost",
        "jobmanager.rpc.port": rpc,
        "jobmanager.memory.process.size": "1g",
        "rest.address": "localhost",
        "rest.port": rest,
        # Milliseconds between updates of the REST interface; the default is three seconds.
        "web.refresh-interval": 20,
        "taskmanager.numberOfTaskSlots": slots,
        "taskmanager.cpu.cores": slots,
        "taskmanager.memory.framework.heap.size": "128m",
        "taskmanager.memory.framework.off-heap.size": "128m",
        "taskmanager.memory.task.heap.size": "640m",
        "taskmanager.memory.task.off-heap.size": "128m",
        "taskmanager.memory.managed.size": "256m",
        "taskmanager.memory.network.min": "256m",
        "taskmanager.memory.network.max": "256m",
        # The number of buffers for each exchange between steps. The default, 512, is too much for jobs with dozens of
        # exchanges.
        "taskmanager.network.sort-shuffle.min-buffers": 32,
        "taskmanager.memory.jvm-metaspace.size": "256m",
        "taskmanager.memory.jvm-overhead.min": "192m",
        "taskmanager.memory.jvm-overhead.max": "192m",
        # With these values a killed TaskManager is noticed after seconds; with the defaults, after a minute.
        "heartbeat.interval": 1000,
        "heartbeat.timeout": 6000,
        "restart-strategy.type": "fixed-delay" if restarts else "none",
        "restart-strategy.fixed-delay.attempts": max(restarts, 1),
        "restart-strategy.fixed-delay.delay": "1 s",
        "io.tmp.dirs": directory,
    }
    (directory / "flink-conf.yaml").write_text("".join(f"{name}: {value}\n" for name, value in settings.items()))

    own = [f"{engines}/flink/*", *map(str, sorted((engines / "job-server-lib").glob("*.jar")))]
    class_path = os.pathsep.join(path for path in own if not Path(path).name.startswith(_NOT_BEAM))

    def java(main_class: str, *options: str) -> list[str]:
        path = ["-cp", class_path, main_class, "--configDir", str(directory)]
        return [find_java(), "-Xmx768m", *_JAVA_OPTIONS, *path, *options]

    with ExitStack() as stack:
        manager = stack.enter_context(process(java(_JOB_MANAGER), directory / "job-manager.log"))
        workers = {
            name: stack.enter_context(
                process(java(_TASK_MANAGER, f"-Dtaskmanager.resource-id={name}"), directory / f"{name}.log")
            )
            for name in (f"task-manager-{index}" for index in range(task_managers))
        }
        cluster = Cluster(f"localhost:{rest}", manager, workers)

        def met() -> bool:
            return bool(cluster.ask("/overview")["taskmanagers"] == task_managers)

        wait_for(met, f"Flink's {task_managers} TaskManagers", directory, [manager, *workers.values()])
        yield cluster


@contextmanager
def job_server(jar: Path, directory: Path, master: str = "[local]") -> Iterator[str]:
    """Start Beam's job server, yield host:port for --job_endpoint, and stop it.

    Args:
        jar: job-server.jar, which sends Beam's jars with each job, or job-server-light.jar, which does not.
        directory: existing directory for the log and staged files.
        master: host:port of Flink's REST interface; or "[local]", then Flink runs in the job server's own process.
    """
    port = free_port()
    ports = ["--job-port", str(port), "--artifact-port", "0", "--expansion-port", "0"]
    command = [find_java(), "-jar", str(jar), "--flink-master", master, *ports, "--artifacts-dir", str(directory)]
    with process(command, directory / f"{jar.stem}.log") as started:
        wait_for(lambda: listens(port), "the job server", directory, [started])
        yield f"localhost:{port}"


@contextmanager
def worker_pool(directory: Path) -> Iterator[str]:
    """Start a pool of Python workers, yield host:port for --environment_config, and stop it and its workers."""
    port = free_port()
    command = [sys.executable, str(POOL), str(port)]
    with process(command, directory / "worker-pool.log") as started:
        wait_for(lambda: listens(port), "the worker pool", directory, [started])
        yield f"localhost:{port}"


def own_process() -> str:
    """Return the --environment_config with which --environment_type=PROCESS starts workers in this Python."""
    return json.dumps({"command": str(WORKER), "env": {"PATH": _path()}})


@contextmanager
def process(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process in a group of its own, with its output in a file; end all processes of the group afterwards."""
    with log.open("wb") as stream:
        started = subprocess.Popen(  # noqa: S603  # our own programs
            command, stdout=stream, stderr=stream, env={**os.environ, "PATH": _path()}, start_new_session=True
        )
    with ended_with_us(started):
        try:
            yield started
        finally:
            started.terminate()
            with suppress(subprocess.TimeoutExpired):
                started.wait(_STOP_SECONDS)


@contextmanager
def ended_with_us(leader: subprocess.Popen[Any]) -> Iterator[None]:
    """Kill the remaining processes of the leader's group after the block, or as soon as this Python process has ended.

    A signal may end a Python process before its `finally` blocks run, and SIGKILL always does. So a separate process
    waits for the end of this process, and then kills the group.
    """
    reaper = subprocess.Popen(  # noqa: S603  # our own program
        [sys.executable, REAPER, str(leader.pid)], stdin=subprocess.PIPE, start_new_session=True
    )
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.killpg(leader.pid, signal.SIGKILL)
        leader.wait()
        # The reaper must not kill the group later: from now on another process may get the leader's number.
        reaper.communicate(b"ended\n")


def find_java() -> str:
    """Return the path of java in JAVA_HOME, or in PATH if JAVA_HOME is not set.

    Raises:
        RuntimeError: there is no java in the searched directories.
    """
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=None if home is None else os.path.join(home, "bin"))
    if found is None:
        raise RuntimeError(f"java is not in {'PATH' if home is None else home}: install Java 11 or 17")
    return found


def _path() -> str:
    """Return a PATH with this Python first, so that workers use the same installation."""
    return os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.socket() as one:
        one.bind(("localhost", 0))
        return int(one.getsockname()[1])


def listens(port: int) -> bool:
    """Return whether something listens on a port of this machine."""
    with socket.socket() as one:
        one.settimeout(1)
        return one.connect_ex(("localhost", port)) == 0


def wait_for(
    happened: Callable[[], bool], what: str, directory: Path, processes: list[subprocess.Popen[bytes]]
) -> None:
    """Wait until `happened` returns true; if `happened` raises OSError, this counts as false."""
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end:
        if any(one.poll() is not None for one in processes):
            raise RuntimeError(f"a process of {what} ended at once: see the logs in {directory}")
        try:
            if happened():
                return
        except OSError:
            pass
        time.sleep(0.2)
    raise RuntimeError(f"{what} did not start within {_START_SECONDS} s: see the logs in {directory}")


def main() -> None:
    """Run a cluster until Ctrl-C."""
    parser = argparse.ArgumentParser(description="Run a Flink cluster with Beam's job server and a worker pool.")
    parser.add_argument("--engines", type=Path, default=Path("build/engines"), help="Directory that fetch.py filled.")
    parser.add_argument("--task-managers", type=int, default=2)
    asked = parser.parse_args()
    engines = asked.engines.absolute()
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hushcount-flink-")))
        running = stack.enter_context(flink(engines, directory, asked.task_managers))
        endpoint = stack.enter_context(job_server(engines / "job-server-light.jar", directory, running.rest))
        pool = stack.enter_context(worker_pool(directory))
        options = f"--job_endpoint={endpoint} --environment_type=EXTERNAL --environment_config={pool}"
        sys.stdout.write(
            f"hushcount JOB ... --runner PortableRunner -- {options} --parallelism={asked.task_managers}\n"
        )
        sys.stdout.write(f"Flink: http://{running.rest}, logs: {directory}; Ctrl-C stops all\n")
        sys.stdout.flush()
        with suppress(KeyboardInterrupt):
            signal.pause()


if __name__ == "__main__":
    main()
