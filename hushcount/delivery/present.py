"""The client of the present epoch, made from the kept documents or from newer ones that the policy accepts.

A request for the campaign file at the moment of use would reveal the time of use, which the random delay of reports
hides. So once a campaign file is kept, making a report causes no request. Rounds of delivery ask for the campaign file
again, at a time that is drawn when the file comes and is kept with the file. A round that begins after the drawn time
waits another random time before it asks for the file, because the process may just have started, or the machine may
have slept. A process that ends before the drawn time asks for the file in a round that sends reports, because the
collector sees the arrival of these reports in any case.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from hushcount.client import Client
from hushcount.clock import Clock
from hushcount.delivery.database import Database
from hushcount.delivery.events import What
from hushcount.delivery.exchange import NoAnswer
from hushcount.delivery.publication import (
    LEAST_AGE,
    Document,
    Documents,
    NotServed,
    Publication,
    fetch_documents,
    keep_documents,
    kept_documents,
    note_refresh,
    read_publication,
)
from hushcount.delivery.site import Site
from hushcount.delivery.waits import LONGEST_WAIT, is_ahead, random_seconds
from hushcount.errors import HushcountError
from hushcount.formats.client_files import ThreadLock
from hushcount.policy import Policy

_SECONDS_WITHOUT_FILE = 60.0
_SLEPT = 120.0
"""Seconds, twice the longest time between two rounds of delivery. A process whose next round is later than this has
slept.
"""
_LONGEST = 1.5 * LONGEST_WAIT
MakeClient = Callable[[Publication], Client]
"""A function that makes the client of a publication; it raises an error if the policy refuses the publication."""
Tell = Callable[[What, str], None]
Hear = Callable[[float], None]


class Present:
    """The client of the newest campaign file that was accepted; threads may share this object.

    If a new campaign file cannot be fetched or is refused, the client continues to use the earlier file.

    Args:
        site: the collector.
        policy: the policy, which names the campaign and bounds the length of the dictionary that is fetched.
        database: the database in which the documents are kept.
        delay: the longest random time that an overdue request waits, in seconds.
        make: function that makes a client.
        tell: function that is called with each step and its reason.
        hear: function that is called with the collector's time when it served a campaign file, in seconds since 1970.
        clock: the device's.
    """

    def __init__(  # noqa: PLR0913  # a sender makes one
        self,
        site: Site,
        policy: Policy,
        database: Database,
        delay: float,
        make: MakeClient,
        tell: Tell,
        hear: Hear,
        clock: Clock,
    ) -> None:
        self._site, self._campaign, self._database, self._delay = site, policy.campaign_id, database, delay
        self._most_bytes = policy.max_dictionary_bytes
        self._make, self._tell, self._hear = make, tell, hear
        self._policy, self._clock, self._lock = policy, clock, ThreadLock()
        self._read = self._is_kept = False
        self._documents: dict[str, Document] = {}
        self._client: Client | None = None
        self._due = 0.0
        self._drawn: float | None = None
        self.failure: HushcountError | None = None
        """Why there is no client, or why the last attempt to get a campaign file failed; None if that attempt
        succeeded.
        """

    def client(self) -> Client | None:
        """Return the client at once, without asking the collector; None if there is no client yet."""
        if not self._read:
            with self._lock:
                self._kept()
        return self._client

    def first(self, once: bool) -> Client | None:
        """Return the client; if no campaign file was ever kept, first ask for one.

        The collector is asked once a minute at most, or with `once` only a single time.
        """
        with self._lock:
            never = self._kept() is None and not self._is_kept
            if never and not (once and self.failure) and self._is_time(sends=False):
                self._try()
            return self._client

    def refreshed(self, sends: bool = False, anyway: bool = False) -> Client | None:
        """Ask for the campaign file if a request is due, or if `anyway`; return the client, None if there is none.

        Only rounds of delivery call this method. `sends`: this round sends reports, so a request that is due need not
        wait another random time.
        """
        with self._lock:
            self._kept()
            if anyway or self._is_time(sends):
                self._try()
            return self._client

    def next_due(self) -> float:
        """Return when a round of delivery may ask for the campaign file, in seconds since 1970."""
        self.client()
        return self._due if self._drawn is None else self._drawn

    def _is_time(self, sends: bool) -> bool:
        now = self._clock.seconds()
        if is_ahead(self._due, now, _LONGEST):
            return False
        if self._client is None or sends:
            return True
        # Draw another time; otherwise a process that slept past the drawn time would ask at the moment at which it
        # wakes.
        if self._drawn is None or now - self._drawn > _SLEPT:
            self._drawn = now + random_seconds(self._delay)
        return not is_ahead(self._drawn, now, _LONGEST)

    def _try(self) -> None:
        try:
            self._ask()
            self.failure, self._due = None, self._documents["campaign"].refresh_at
        except HushcountError as error:
            self.failure = error
            again = _SECONDS_WITHOUT_FILE if self._client is None else LEAST_AGE + random_seconds(LEAST_AGE / 2.0)
            self._due = self._clock.seconds() + again
            self._tell("not_fetched" if isinstance(error, NoAnswer | NotServed) else "refused", str(error))
        self._drawn = None

    def _kept(self) -> Client | None:
        if not self._read:
            documents = kept_documents(self._database, self._campaign)
            if documents:
                self._is_kept = True
                try:
                    self._client = self._make(read_publication(documents, self._campaign, self._most_bytes))
                    self._documents = documents
                    self._due = documents["campaign"].refresh_at
                except HushcountError as error:
                    # Another version of Hushcount kept the file, the file's keys have expired, or the file is older
                    # than the newest file that the policy accepted.
                    self.failure = error
                    self._tell("refused", str(error))
            self._read = True
        return self._client

    def _ask(self) -> None:
        now = self._clock.seconds()
        check = partial(self._policy.check, now=self._clock.now())
        documents = fetch_documents(self._site, self._campaign, self._documents, now, check, self._most_bytes)
        # Only now is it known that no page of another network came in the collector's place.
        if (at := documents["campaign"].at) is not None:
            self._hear(at)
        # Compare the signatures too: the same file may have a new signature, because keys that vouched for the file
        # expired.
        if self._client is not None and _signed(documents) == _signed(self._documents):
            self._documents = documents
            note_refresh(self._database, self._campaign, documents["campaign"].refresh_at)
            self._tell("unchanged", "")
            return
        self._client = self._make(read_publication(documents, self._campaign, self._most_bytes))
        self._documents = documents
        self._is_kept = True
        keep_documents(self._database, self._campaign, documents)
        self._tell("fetched", f"epoch {self._client.campaign.epoch}")


def _signed(documents: Documents) -> tuple[bytes, bytes | None]:
    return documents["campaign"].data, documents["campaign"].signature
