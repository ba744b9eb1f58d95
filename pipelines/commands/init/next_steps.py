"""The commands that `hushcount init` prints: collect and count, send one report, and try it out with a first number."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from hushcount.collection.windows import duration_text
from pipelines.commands.init.wizard import Answers
from pipelines.commands.init.write import Place

_SHORT = timedelta(hours=1)
"""A deployment with shorter windows is a try-out."""


@dataclass(frozen=True)
class NextSteps:
    """The next commands for a new deployment.

    Attributes:
        place: the deployment.
        answers: the answers to the prompts.
        value: the value of a test report.
    """

    place: Place
    answers: Answers
    value: str

    @property
    def is_trial(self) -> bool:
        """Whether windows are so short that a first number comes while one waits."""
        return self.answers.window < _SHORT

    def commands(self, *, inside: bool = False) -> list[str]:
        """Return four commands: take reports, count the reports, send one report, and show what became of this report.

        Args:
            inside: whether the caller is in the deployment's directory, so that no path is needed.
        """
        directory = self.place.directory
        config = "" if inside else f" --config {shlex.quote(str(directory / 'deployment.toml'))}"
        # Run each command as the services' user, so that this user owns all files.
        own = "" if self.place.user.is_caller else f"sudo -u {self.place.user.name} "
        plain = "" if self.place.is_near else " --plain-http"
        send = f"hushcount send --site {self.place.site}{plain} --policy {self._policy(inside)}"
        # Windows of a calendar are listed in the campaign file.
        length = self.answers.tiling.length
        send += f" --window {duration_text(length)}" if isinstance(length, timedelta) else ""
        return [
            f"{own}hushcount collect{config}",
            f"{own}hushcount run{config} --watch",
            f"{own}{send} {shlex.quote(self.value)}",
            f"{own}hushcount status{config}",
        ]

    def services(self, *, inside: bool = False) -> list[str]:
        """Return two commands that start the collector and the schedule of runs, now and at each boot."""
        units = "systemd" if inside else shlex.quote(str(self.place.directory / "systemd"))
        return [
            f"sudo cp {units}/hushcount-* /etc/systemd/system/",
            "sudo systemctl enable --now hushcount-collect.service hushcount-run.timer",
        ]

    def trial(self) -> str:
        """Return the command that makes a deployment with windows of a minute, for the same values."""
        listed = self.answers.values.options or "--open-domain"
        if self.answers.values.dictionary is not None:
            path, here = self.answers.values.dictionary, Path.cwd()
            listed = f"--dictionary {shlex.quote(str(path.relative_to(here) if path.is_relative_to(here) else path))}"
        return f"hushcount init trial {listed} --window 1m --min-batch 100 --yes"

    def simulate(self, *, inside: bool = False) -> str:
        """Return the command that sends reports of simulated people."""
        policy, people = self._policy(inside), self.answers.clients
        return f"hushcount simulate --send --site {self.place.site} --policy {policy} --people {people}"

    @property
    def question(self) -> str:
        """The command that shows what simulated people sent."""
        part = self.answers.values.number
        return f"hushcount ask {'top' if part is None else part.question}"

    def _policy(self, inside: bool) -> str:
        return "policy.json" if inside else shlex.quote(str(self.place.directory / "policy.json"))
