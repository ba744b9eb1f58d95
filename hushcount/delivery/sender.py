"""The sender: brings an app's value to the collector's disk as a report, which it makes, queues, delays and sends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from hushcount.allowance import Allowance
from hushcount.budget import Budget, OptedOut
from hushcount.campaigns.campaign import Stream
from hushcount.client import Client
from hushcount.clock import MACHINE, Clock
from hushcount.delivery.arrivals import Arrivals
from hushcount.delivery.background import Background
from hushcount.delivery.database import own_folder
from hushcount.delivery.delivering import Deliverer
from hushcount.delivery.evaluations import Asker
from hushcount.delivery.events import Delivery, Event, EventLog, What
from hushcount.delivery.making import Made, Maker, OpenEvaluations
from hushcount.delivery.passes import Issuer, Passes
from hushcount.delivery.present import Present
from hushcount.delivery.publication import Publication
from hushcount.delivery.queue import Queue, database
from hushcount.delivery.reported import Refused, Reported
from hushcount.delivery.site import Site
from hushcount.delivery.tokens import collector_name
from hushcount.delivery.waiting import Waiting
from hushcount.errors import HushcountError, NotYet, UsageError
from hushcount.memory import ClientMemory
from hushcount.newest import Untrusted
from hushcount.policy import Policy, checked_policy
from hushcount.report_making import Measurement
from hushcount.sampling import Installation
from hushcount.spent import Spent
from hushcount.window_starts import Starts

_LONGEST_DELAY = timedelta(days=1)


class Sender:
    """Makes the reports of one client for one campaign, and delivers them to one collector. Threads may share it.

    With a folder, reports are on the disk when `report` returns. So a killed process loses no report, and the next
    process that uses this folder sends the reports of the killed process. Processes may share a folder, because no
    report is sent by two processes at once. Without a folder, all reports and counts end with the process, and a forked
    process begins with an empty queue.

    If the mixes of a campaign add noise, a report is made for the window in which it is due, and counts in no other
    one. A report that was not sent by the end of this window is dropped, with the reason `other_window`; what it cost
    stays spent.

    Args:
        site: the collector's address, as in https://collector.example.com, or a `Site`, which has the collector's name
            too if the campaign has several collectors.
        policy: the policy, which names the campaign, or the path of the policy's file. If there is a folder, the newest
            epoch that was accepted is kept in the folder, unless the policy names another place.
        folder: directory that only this client uses; it is made with mode 0700 if it is missing.
        budget: bounds the total cost of this person's reports; the default budget only counts the cost.
        window: length of the operator's windows (`Allowance`); if the campaign file lists when windows begin, as for
            calendar months, this is the least length that the app allows.
        keep_values: keep the plain value with a report on this device until the report is sent. If a report arrives
            after its epoch was closed, a new report is made from the kept value, which spends budget again. Kept values
            can also wait for a campaign file that cannot be fetched yet. Without `keep_values`, reports that arrive too
            late are dropped and counted, and `report` raises NotYet if there is no campaign file.
        delay: each report waits a random time of at most this length, and at most a day, so that its arrival does not
            reveal when the value was used. In a campaign with an evaluator, the evaluation of a discovery report waits
            such a random time in memory, and after the answer the finished report waits another random time.
        evaluator: address or `Site` of the evaluator, if the evaluator does not answer at `site`.
        issuer: who gives the client its passes, if the campaign asks for passes.
        answer_within: how long an evaluation without an answer is asked for again, at most a day. If no answer comes in
            this time, or if the process ends earlier, the report is sent without its value.
        most_queued: how many reports may wait; for one more, `report` makes nothing and returns QUEUE_FULL.
        strict: raise what stops a report, for scripts and tests. By default `report`, `start` and `close` raise nothing
            that a person, a device or an operator causes: `report` returns a word, and `log` has the sentence.
        clock: the device's.

    Raises:
        UsageError: an argument cannot be used, the policy file is missing or invalid, or other users can change the
            folder. A folder that cannot be made is no error, unless `strict`: each report then returns STORAGE.
    """

    def __init__(  # noqa: PLR0913  # an app sets each by its name
        self,
        site: Site | str,
        policy: Policy | Path | str,
        folder: Path | str | None = None,
        *,
        budget: Budget | None = None,
        window: timedelta = timedelta(days=1),
        keep_values: bool = False,
        delay: timedelta = timedelta(minutes=10),
        evaluator: Site | str | None = None,
        issuer: Issuer | None = None,
        answer_within: timedelta = timedelta(hours=1),
        most_queued: int = 1000,
        strict: bool = False,
        clock: Clock = MACHINE,
    ) -> None:
        for name, span in (("delay", delay), ("answer_within", answer_within)):
            if not timedelta() <= span <= _LONGEST_DELAY:
                raise UsageError(f"{name} is {span}, must be from 0 to {_LONGEST_DELAY}")
        if most_queued < 1:
            raise UsageError(f"most_queued is {most_queued}, must be at least 1")
        self._strict, self._log, self._refused = strict, EventLog(), Refused()
        self._unmade: Path | None = None
        home = None if folder is None else self._made(Path(folder))
        self._policy = policy = checked_policy(policy, home)
        self._budget = budget or Budget(None if home is None else home / "budget.json")
        self._memory = ClientMemory(None if home is None else home / "memory.json")
        self._allowance = Allowance(window, None if home is None else home / "allowance.json")
        self._installation = Installation(None if home is None else home / "installation.json")
        self._keep_values, self._clock = keep_values, clock
        site = Site(site) if isinstance(site, str) else site
        self._collector, self._window = site.name, window
        self._maker = Maker(delay.total_seconds(), answer_within.total_seconds(), clock, site.name)
        tables = database(None if home is None else home / "queue.sqlite")
        # The evaluator may be another party, so it does not get the collector's app token, and plain http to the
        # evaluator is forbidden.
        if isinstance(evaluator, str):
            evaluator = replace(site, address=evaluator, name=None, app_token=None, plain=False)
        asked = evaluator or site
        self._issuer = issuer
        lease = 60.0 + 10.0 * max(site.seconds, asked.seconds)
        self._queue = Queue(tables, policy.campaign_id, most_queued, lease)
        self._evaluations = OpenEvaluations()
        self._arrivals = arrivals = Arrivals(self._queue, self._starts, clock)
        self._present = Present(
            site, self._policy, tables, self._maker.delay, self._client, self._tell, arrivals.heard, clock
        )
        asker = Asker(
            asked, self._queue, arrivals, self._evaluations, self._budget, self._maker.delay, self._tell, clock
        )
        passes = Passes(issuer, site.name, self._queue, arrivals, self._budget, self._tell, clock)
        self._deliverer = Deliverer(
            site, self._queue, arrivals, self._present, self._budget, self._maker, asker, passes, self._tell, clock
        )
        self._is_durable, self._background = home is not None, Background(self._deliverer, self._tell, clock)

    def report(self, value: str | float, by: Mapping[str, str | float] | None = None) -> Reported:
        """Make and queue the reports of one value, one for each stream of the campaign; return what became of them.

        If a value is too long for discovery, its discovery report is a blank.

        Once a campaign file is kept, this method sends no request. The delivering thread fetches the first campaign
        file when the thread starts. If no thread has fetched a campaign file, the first report may fetch it, and the
        time of this request reveals the time of use.

        Args:
            by: the client's coordinate on each axis of the campaign; a missing or unlisted one is "other".

        Returns:
            QUEUED: all reports of the value wait to be sent, or the value itself waits (`keep_values`). With any other
            word at least one report was not made; `dropped` counts the words, and `log` has a sentence for each.

        Raises:
            UsageError: the value or a coordinate is neither a str nor a number. With `strict`, the error that a word of
                `Reported` stands for.
        """
        measurement = Measurement.of(value, by)
        try:
            self._report(measurement)
        except (HushcountError, OSError) as error:
            if self._strict:
                raise
            self._tell("not_queued", str(error))
            return self._refused.count(error)
        return Reported.QUEUED

    @property
    def dropped(self) -> Mapping[str, int]:
        """How many values `report` did not queue, by the word that it returned; of this object in this process."""
        return self._refused.counts()

    @property
    def waiting(self) -> int | None:
        """How many reports and plain values wait on this device; None if the folder cannot be read."""
        try:
            return self._queue.waiting()
        except (HushcountError, OSError):
            return None

    def deliver(self, early: bool = False) -> Delivery:
        """Send due reports in batches, and return the result; any process that uses the folder may call this method.

        Failures of the collector or the network never raise an error: the reports wait, longer after each failure. Call
        this method by a timer, not when a value is used, because it also asks for the campaign file when such a request
        is due.

        Args:
            early: also ask for evaluations and send reports that are not due yet. The time of arrival then reveals when
                the app called this method. Discovery reports whose evaluation gets no answer are sent without their
                values.

        Raises:
            HushcountError: the folder cannot be read or written.
        """
        return self._deliverer.deliver(early)

    def start(self) -> Sender:
        """Start a thread that delivers; a process that is forked later starts such a thread with its first report."""
        self._background.start()
        return self

    def close(self) -> None:
        """End the thread, and ask for all open evaluations, because open evaluations are lost when the process ends.

        Without a folder, waiting reports would also be lost when the process ends, so they are sent now, even if they
        are not due. HushcountError: the folder cannot be read or written; only with `strict`.
        """
        self._background.end()
        try:
            if self._is_durable:
                self._deliverer.asker.ask(early=True)
            else:
                self.deliver(early=True)
        except (HushcountError, OSError) as error:
            if self._strict:
                raise
            self._tell("again", str(error))

    def __enter__(self) -> Sender:
        return self.start()

    def __exit__(self, *_error: object) -> None:
        self.close()

    def spent(self) -> Spent:
        """Return what the reports cost, with sentences for the person; HushcountError: the budget cannot be read."""
        return self._budget.spent(self._clock.now())

    def forget(self) -> None:
        """Opt out durably: make and send no more reports; delete waiting reports, remembered answers and tokens.

        The opt-out covers all campaigns in the folder, because a folder belongs to one person. The budget keeps its
        record of what was spent. `Budget.opt_in` of the same budget permits reports again.

        Raises:
            HushcountError: the opt-out cannot be stored. Tell the person, and call this method again.
        """
        self._budget.opt_out()
        self._evaluations.clear()
        self._memory.forget()
        self._tell("forgotten", "", self._queue.clear_all())

    @property
    def log(self) -> tuple[Event, ...]:
        """The newest events of this object in this process; no event contains a value."""
        return self._log.events()

    def _report(self, measurement: Measurement) -> None:
        if self._unmade is not None:
            # Somebody may have made the folder since, so that others can change it.
            own_folder(self._unmade)
            self._unmade = None
        # Check the opt-out first, because a request for the campaign file would tell the collector that the person uses
        # the app.
        if self._budget.opted_out:
            raise self._opted_out()
        self._background.go_on_after_fork()
        client, running = self._present.client(), self._background.is_running
        if client is None and not (running and self._keep_values):
            client = self._present.first(once=running)
        if client is None:
            self._require_kept_value()
            self._queue.require_room(1)
            self._put([Made(Waiting("", None, b"", measurement, self._clock.seconds()))], "waits")
            return
        client.require_asked()
        self._queue.require_room(len(client.campaign.streams))
        self._arrivals.require_room(client.campaign, client.campaign.streams)
        ready: list[Made] = []
        try:
            for stream in client.campaign.streams:
                ready.append(self._maker.made(client, stream, measurement, self._keep_values))
        finally:
            # A report that was charged is sent, even if the budget does not suffice for the report of the other stream.
            self._put(ready, "queued")

    def _starts(self) -> Starts:
        client = self._present.client()
        return Starts(int(self._window.total_seconds())) if client is None else client.campaign.starts(self._window)

    def _client(self, publication: Publication) -> Client:
        campaign = publication.campaign
        collector_name(campaign, self._collector)
        if campaign.passes is not None and self._issuer is None:
            raise Untrusted(
                f"campaign {campaign.id} asks for passes of an issuer: give Sender(issuer=Issuer(...)), or --issuer"
            )
        return Client(
            campaign,
            policy=self._policy,
            signature=publication.signature,
            log=publication.log,
            dictionary=publication.dictionary,
            memory=self._memory if campaign.memory else None,
            allowance=self._allowance,
            budget=self._budget,
            installation=self._installation,
            clock=self._clock,
        )

    def _made(self, folder: Path) -> Path:
        try:
            return own_folder(folder)
        except HushcountError as error:
            if self._strict or isinstance(error, UsageError):
                raise
            self._unmade = folder
            return folder

    def _require_kept_value(self) -> None:
        failure = self._present.failure
        if isinstance(failure, Untrusted):
            raise failure
        if not self._keep_values:
            raise NotYet(
                f"campaign {self._policy.campaign_id} is not fetched yet ({failure}): report again later, or give "
                "keep_values=True to let values wait on this device"
            )

    def _opted_out(self) -> OptedOut:
        return OptedOut(f"the person opted out: nothing is queued or sent for campaign {self._policy.campaign_id}")

    def _tell(self, what: What, reason: str, reports: int = 0, stream: Stream | None = None) -> None:
        self._log.add(Event(self._clock.now(), what, reports, stream, reason))

    def _put(self, made: list[Made], what: What) -> None:
        if made:
            self._queue.put([one.waiting for one in made])
            self._evaluations.add([one.evaluation for one in made if one.evaluation is not None])
            if self._budget.opted_out:
                # Another thread or process may have opted out, and emptied the queue, while these reports were made.
                self._queue.clear()
                self._evaluations.clear()
                raise self._opted_out()
            self._tell(what, "", len(made))
            dues = (one.waiting.due if one.evaluation is None else one.evaluation.due for one in made)
            self._background.wake_before(min(dues))
