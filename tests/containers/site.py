"""A deployment of deploy/compose that was laid out: started, asked, posted to, stopped."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from testcontainers.compose import DockerCompose

from hushcount.campaigns.campaign import Campaign
from tests.containers import posting
from tests.containers.posting import Posted

METRICS = "/var/lib/hushcount/state/run.prom"
_PATIENCE = 180.0


@dataclass
class Site:
    """A copy of deploy/compose with keys, campaigns and settings.

    Attributes:
        directory: the copy.
        project: of compose; containers are named PROJECT-SERVICE-1.
        port: of this machine, at which the proxy is reached.
        files: compose files, the first with the others laid over it.
    """

    directory: Path
    project: str
    port: int
    files: tuple[str, ...] = ("compose.yaml",)
    acknowledged: dict[str, int] = field(default_factory=lambda: {"reports": 0, "discovery": 0})

    @cached_property
    def compose(self) -> DockerCompose:
        return DockerCompose(self.directory, compose_file_name=list(self.files), wait=True)

    @property
    def campaign(self) -> Campaign:
        return Campaign.read(self.directory / "campaign.json")

    def docker_compose(self, *words: object, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Call docker compose on this deployment; what it says is in the failure."""
        command = [*self.compose.docker_compose_command(), *map(str, words)]
        done = subprocess.run(command, cwd=self.directory, capture_output=True, text=True, check=False)  # noqa: S603
        assert not check or done.returncode == 0, f"{shlex.join(command)}:\n{done.stdout}\n{done.stderr}"
        return done

    def up(self) -> None:
        """Start what is not running, and wait until every container is healthy."""
        done = self.docker_compose("up", "--detach", "--wait", check=False)
        assert done.returncode == 0, f"{done.stderr}\n{self.logs()}"
        self.docker_compose("cp", "proxy:/var/lib/caddy/caddy/pki/authorities/local/root.crt", "root.crt")

    def down(self, *, volumes: bool = False) -> None:
        """Remove containers and networks; what they stored stays unless `volumes` is set."""
        self.docker_compose("down", "--timeout", "60", *(["--volumes"] if volumes else []))

    @contextmanager
    def running(self) -> Iterator[Site]:
        """Run it for a block; what its containers said is printed if the block fails."""
        try:
            # What a run left that was killed is not this one's.
            self.down(volumes=True)
            self.up()
            yield self
        except BaseException:
            sys.stdout.write(self.logs())
            raise
        finally:
            self.down(volumes=True)

    def logs(self, *services: str) -> str:
        return self.docker_compose("logs", "--no-color", "--tail", "200", *services, check=False).stdout

    def container(self, service: str) -> str:
        """Return the name of a service's container, for docker's own commands."""
        return f"{self.project}-{service}-1"

    def hushcount(self, party: str, *words: object, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command of hushcount in the container of a party's schedule."""
        return self.docker_compose("exec", "-T", party, "hushcount", *words, check=check)

    def status(self, party: str) -> dict[str, Any]:
        """Return what `hushcount status --json` says of the campaign at a party.

        Its exit status says whether there are differences: for a moment there may be, as of a segment without manifest.
        """
        told = self.hushcount(party, "status", "--json", check=False)
        assert told.stdout, told.stderr
        (of_campaign,) = json.loads(told.stdout)
        assert isinstance(of_campaign, dict)
        return of_campaign

    def doctor(self, party: str) -> list[dict[str, str]]:
        """Return the checks of `hushcount doctor` that are not good; its exit status is 0 unless one is bad."""
        checks = json.loads(self.hushcount(party, "doctor", "--json", check=False).stdout)
        return [check for check in checks if check["verdict"] != "good"]

    def received(self) -> dict[str, int]:
        """Return how many reports of each stream the shuffler's log has, in windows that are over."""
        counts = {"reports": 0, "discovery": 0}
        for window in self.status("shuffler")["windows"]:
            counts[window["stream"]] += window["received"]
        return counts

    def reports_of(self, values: Sequence[str]) -> dict[str, list[bytes]]:
        """Return sealed reports of values for both streams, made by the project's client."""
        return posting.reports_of(self.campaign, self.directory / "policy.json", values)

    def post(self, values: Sequence[str], **options: Any) -> Posted:
        """Let as many clients as there are values post a report of each stream through the proxy."""
        return self.post_made(self.reports_of(values), **options)

    def post_made(self, reports: dict[str, list[bytes]], **options: Any) -> Posted:
        """Post reports that were made before, and count what is acknowledged."""
        site = posting.Site(self.port, self.directory / "root.crt")
        posted = posting.post(site, self.campaign, reports, **options)
        for stream, number in posted.acknowledged.items():
            self.acknowledged[stream] += number
        return posted

    def wait_until(self, condition: Callable[[], object], what: str, seconds: float = _PATIENCE) -> None:
        """Wait until a condition holds; the containers' logs are in the failure."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"{what} did not happen in {seconds} s\n{self.logs()}"
            time.sleep(1.0)

    def numbers(self, party: str) -> Counter[tuple[str, str]]:
        """Return numbers of reports by metric and stream, as a schedule's last look wrote them.

        A file is read: `status` reads all that lies in the store, which is too much to be asked each second.
        """
        text = self.docker_compose("exec", "-T", party, "cat", METRICS, check=False).stdout
        found: Counter[tuple[str, str]] = Counter()
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                if "stream" in sample.labels:
                    name = sample.labels.get("hop", family.name.removeprefix("hushcount_run_"))
                    found[name, sample.labels["stream"]] += int(sample.value)
        return found

    def wait_until_counted(self, seconds: float = _PATIENCE, post_more: Callable[[], object] = lambda: None) -> None:
        """Wait until the analyzer has passed on, or refused, every report that was acknowledged, once.

        Args:
            post_more: called where everything has arrived, and fewer reports than the minimum batch wait for others.
        """

        def counted() -> bool:
            seen = self.numbers("shuffler")
            # More than that where clients sent something again.
            arrived = all(seen["collected_reports", stream] >= number for stream, number in self.acknowledged.items())
            if arrived and any(seen["waiting_reports", stream] for stream in self.acknowledged):
                post_more()
            done, hops = self.numbers("analyzer"), {"reports": "analyze", "discovery": "discover"}
            for stream, hop in hops.items():
                assert done[hop, stream] <= self.acknowledged[stream], (done, self.acknowledged)
            return all(done[hop, stream] == self.acknowledged[stream] for stream, hop in hops.items())

        self.wait_until(counted, f"results of {self.acknowledged}", seconds)
