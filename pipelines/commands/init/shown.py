"""What `hushcount init` tells about a new deployment, for people and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from hushcount.campaigns.campaign import Campaign
from hushcount.clock import MACHINE
from hushcount.collection.windows import duration_text
from hushcount.maths.figures import odds_of, rounded_up, users, within
from hushcount.oracles.sight import Sight
from hushcount.planning.planner import Candidate
from pipelines.commands.init.next_steps import NextSteps
from pipelines.commands.init.planned import Budget, Spans, discovery_guarantee, results_odds, shuffled_guarantee
from pipelines.console.tables import facts, stamp
from pipelines.jobs.number_plans import PlannedNumbers

_COLUMNS = 80


@dataclass(frozen=True)
class Made:
    """A new deployment: the planned mechanism, what a window shows, the campaign, the ledger's budget, and numbers."""

    steps: NextSteps
    best: Candidate
    sight: Sight
    campaign: Campaign
    budget: Budget
    numbers: PlannedNumbers | None

    def data(self) -> dict[str, Any]:
        """Return the answer for machines."""
        place, answers, campaign = self.steps.place, self.steps.answers, self.campaign
        proposed = answers.aim.window()
        return {
            "directory": str(place.directory),
            "campaign": campaign.id,
            "epoch": campaign.epoch,
            "fingerprint": campaign.fingerprint.hex(),
            "mechanism": self.best.mechanism,
            "standard_error": self.best.standard_error_users,
            "clients": answers.clients,
            "assumption": answers.aim.assumption(answers.window),
            "epsilon": answers.epsilon,
            "proposed": {"window": proposed.total_seconds(), "epsilon": answers.aim.epsilon(answers.window)},
            **({} if self.numbers is None else {"number": self.numbers.data()}),
            "sight": {**asdict(self.sight), "shows": self.sight.shows, "is_hopeless": self.sight.is_hopeless},
            "minimum_batch": campaign.shuffle.minimum_batch,
            "window": answers.window.total_seconds(),
            "windows": answers.tiling.said,
            "first_result": self._ends().isoformat(),
            "guarantee": shuffled_guarantee(campaign, answers.clients)[0],
            "discovery": discovery_guarantee(campaign),
            "trust": self.trust(),
            "ledger": asdict(self.budget),
            "commands": self.steps.commands(),
            "trial": None if self.steps.is_trial else self.steps.trial(),
            "simulate": self.steps.simulate() if self.steps.is_trial else None,
            "user": place.user.name,
            "services": " && ".join(self.steps.services()),
        }

    def trust(self) -> list[str]:
        """Return sentences on which guarantee holds against which party, and how to promise more."""
        _, kept = shuffled_guarantee(self.campaign, self.steps.answers.clients)
        odds = results_odds(self.campaign, self.steps.answers.clients)
        sentences = [
            "You hold all keys, so against you only the local guarantee holds: a report changes the odds that a person "
            f"sent one value rather than another by {odds_of(kept.local_epsilon)}, whoever sees it."
        ]
        if odds is not None:
            found = "" if self.campaign.discovery is None else ", the values found included,"
            sentences.append(
                f"For people who see only results{found} these odds change by {within(odds)} in a window, as long as "
                "you keep to the rules."
            )
        if self.campaign.discovery is not None:
            sentences.append("You can read every value that is sent for discovery: it is sealed, but not randomised.")
        return [
            *sentences,
            f"The ledger has room for every window of {self.budget.renew_days} days, and refuses more: this stops a "
            "fault that would release too often, and promises nothing to people.",
            "To promise more, let people who share no keys run the parties: deploy/README.md.",
        ]

    def shown(self) -> Iterator[RenderableType]:
        """Yield the answer for people, at most 80 columns wide but for the directory's own name."""
        steps = self.steps
        yield facts(f"deployment {steps.place.directory}", self._facts())
        yield ""
        # Padding wraps a text between words; commands are plain strings, because they must not wrap.
        yield Padding(Text(" ".join(self.trust())), 0)
        yield ""
        if not steps.is_trial:
            yield Padding(Text("To see a number within minutes, make a try-out with windows of a minute first:"), 0)
            yield _whole(steps.trial())
        collect, run, send, status = steps.commands(inside=True)
        yield "Take reports, and count each window after its end, in two terminals:"
        yield f"  cd {steps.place.directory}"
        yield from (f"  {command}" for command in (collect, run))
        if steps.is_trial:
            yield "Send reports of simulated people, and look at them after the window's end:"
            yield from map(_whole, (steps.simulate(inside=True), steps.question))
        else:
            yield "or as services:"
            yield from (f"  {command}" for command in steps.services(inside=True))
            if steps.place.user.name == "root":
                said = "(The services run as root. Give --user NAME for a user with fewer rights.)"
                yield Padding(Text(said), (0, 0, 0, 2))
        yield "Send one report of your own, and see what becomes of it:"
        yield from map(_whole, (send, status))

    def _facts(self) -> dict[str, str]:
        answers, found = self.steps.answers, discovery_guarantee(self.campaign)
        spans, tiling = Spans.of(answers.tiling), answers.tiling
        begins = tiling.words(tiling.window_at(MACHINE.now()))
        listed, numbers, assumed = answers.values.known, self.numbers, answers.aim.assumption(answers.window)
        return {
            "campaign": f"{answers.id}, epoch 1, signed and published: collectors accept reports from now on",
            "values": "any text"
            if listed is None
            else f"{len(listed.items):,} listed, and 'other': {listed.sizes}"
            if numbers is None
            else f"numbers, by {numbers.part.words}, and 'other'",
            "window": f"{tiling.said}; late reports count for {duration_text(spans.grace)} more; "
            f"reports are kept for {duration_text(spans.kept)}",
            **({"begins": begins} if begins else {}),
            "you see": self.sight.words(),
            **({} if numbers is None else {"of numbers": "; ".join(numbers.words())}),
            **({"assumed": f"{assumed}."} if assumed else {}),
            "mechanism": f"{self.best.mechanism}, the least error for {answers.clients:,} people in a window at "
            f"epsilon {answers.epsilon:g}",
            "error": f"{users(self.best.standard_error_users)} people, the standard error of a count",
            "discovery": "none"
            if found is None
            else f"epsilon {rounded_up(found['epsilon'])}: a value is found when about "
            f"{found['clients_for_even_chance']:,} people sent it, and shown with a noisy count",
            "first result": self._first(),
        }

    def _ends(self) -> datetime:
        return self.steps.answers.tiling.window_at(MACHINE.now()).end

    def _first(self) -> str:
        answers, fewest = self.steps.answers, self.campaign.shuffle.minimum_batch
        ends = stamp(self._ends())
        if answers.clients >= fewest:
            return f"after {ends} at the earliest, and from {fewest:,} reports on"
        return (
            f"none from {answers.clients:,} people: a release needs {fewest:,} reports, and too few wait for more for "
            f"{duration_text(Spans.of(answers.tiling).grace)}. Give a longer --window, or a smaller --min-batch"
        )


def _whole(command: str) -> str:
    """Return a command to paste; a shell reads the two lines of a long one as one."""
    begin, option, rest = command.rpartition(" --policy " if " --policy " in command else " --window ")
    return f"  {command}" if len(command) <= _COLUMNS - 2 else f"  {begin} \\\n   {option}{rest}"
