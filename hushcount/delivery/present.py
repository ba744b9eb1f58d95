"""The client of the present epoch: from the kept documents, or from the collector's newest if the policy accepts it."""

from __future__ import annotations

import time
from collections.abc import Callable

from hushcount.client import Client
from hushcount.delivery.database import Database
from hushcount.delivery.documents import Document, NotServed, keep_documents, kept_documents
from hushcount.delivery.events import What
from hushcount.delivery.exchange import NoAnswer
from hushcount.delivery.publication import Documents, Publication, fetch_documents, read_publication
from hushcount.delivery.site import Site
from hushcount.errors import HushcountError
from hushcount.formats.client_files import ThreadLock
from hushcount.policy import Policy

_SECONDS_AFTER_FAILURE = 60.0
MakeClient = Callable[[Publication], Client]
"""What makes the client of a publication; it raises if the policy refuses that."""
Tell = Callable[[What, str], None]


class Present:
    """The client of the newest campaign file that was accepted; threads may share it.

    A file that cannot be fetched or is refused changes nothing: the one before stays in use.

    Args:
        site: the collector.
        policy: names the campaign, and bounds what is fetched.
        database: where the documents are kept.
        make: what makes a client.
        tell: is told each step, with a reason.
    """

    def __init__(self, site: Site, policy: Policy, database: Database, make: MakeClient, tell: Tell) -> None:
        self._site, self._campaign, self._database = site, policy.campaign_id, database
        self._most_bytes = policy.max_dictionary_bytes
        self._check, self._make, self._tell = policy.check, make, tell
        self._lock = ThreadLock()
        self._read = False
        self._documents: dict[str, Document] = {}
        self._client: Client | None = None
        self._next_attempt = 0.0
        self.failure: HushcountError | None = None
        """Why the last attempt failed; None if it did not."""

    def client(self) -> Client | None:
        """Return the client at once, without asking the collector; None if there is none yet."""
        if not self._read:
            with self._lock:
                self._kept()
        return self._client

    def refreshed(self, anyway: bool = False) -> Client | None:
        """Ask the collector if it is time, or `anyway`; return the client, None if there is still none."""
        with self._lock:
            before, now = self._kept(), time.monotonic()
            fresh = before is not None and self._documents["campaign"].is_fresh(time.time())
            if anyway or not (fresh or now < self._next_attempt):
                try:
                    self._ask(before)
                    self.failure = None
                except (NoAnswer, NotServed) as error:
                    self._fail("not_fetched", error)
                except HushcountError as error:
                    self._fail("refused", error)
            return self._client

    def _kept(self) -> Client | None:
        if not self._read:
            documents = kept_documents(self._database, self._campaign)
            if documents:
                try:
                    self._client = self._make(read_publication(documents, self._campaign, self._most_bytes))
                    self._documents = documents
                except HushcountError as error:
                    # Kept by another version, or older than what the policy accepted: fetched anew.
                    self._tell("refused", str(error))
            self._read = True
        return self._client

    def _ask(self, before: Client | None) -> None:
        now = time.time()
        documents = fetch_documents(self._site, self._campaign, self._documents, now, self._check, self._most_bytes)
        # The same file may be signed anew, when the keys that vouched for it expire.
        if before is not None and _signed(documents) == _signed(self._documents):
            self._documents = documents
            self._tell("unchanged", "")
            return
        self._client = self._make(read_publication(documents, self._campaign, self._most_bytes))
        self._documents = documents
        keep_documents(self._database, self._campaign, documents)
        self._tell("fetched", f"epoch {self._client.campaign.epoch}")

    def _fail(self, what: What, error: HushcountError) -> None:
        self.failure = error
        self._next_attempt = time.monotonic() + _SECONDS_AFTER_FAILURE
        self._tell(what, str(error))


def _signed(documents: Documents) -> tuple[bytes, bytes | None]:
    return documents["campaign"].data, documents["campaign"].signature
