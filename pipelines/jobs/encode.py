"""hushcount job encode: turn a file of values into sealed envelopes, as the owners of the values would send them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import apache_beam as beam
import numpy as np
import numpy.typing as npt
from apache_beam.pvalue import TaggedOutput
from apache_beam.typehints import with_input_types, with_output_types
from rich.console import Console

from hushcount.campaigns.campaign import Campaign, Stream
from hushcount.campaigns.dictionary import read_lines
from hushcount.clock import MACHINE, Clock
from hushcount.collection.envelopes import ENVELOPES, TOKEN_BYTES, client_token, envelope_dtype
from hushcount.errors import UsageError
from hushcount.many_clients import ManyClients
from hushcount.randomness import SystemWords
from hushcount.reasons import Reason, rejected
from hushcount.report_making import measured
from hushcount.senders import Senders
from hushcount.threads import available_threads
from hushcount.wire.sealing import Octets
from keys.opening_engines import require_opening_engine, sealing_for
from pipelines.files.blocks import WriteShards
from pipelines.files.orders import FolderOf, Listed, OfOrder, Order, ShardOfOrder
from pipelines.handover.evaluator_address import Evaluator, namer
from pipelines.jobs.job import Finished, Job, Place
from pipelines.ledger.charging import Charging
from pipelines.outputs.counting import WriteCounts
from pipelines.outputs.counts import counts_of, label
from pipelines.outputs.staging import Output, require_free
from pipelines.outputs.summary import make_summary

_CHUNK_LINES = 1 << 17
_AT_ONCE = 1 << 13
_LOOKED_AT = 100
_LOCAL_PREFIX = 0xFD  # prefix of unique local IPv6 addresses


@dataclass(frozen=True, kw_only=True)
class EncodeJob(Job):
    """Privatise and seal the lines of a file; `campaign_path` and `values` are absolute paths."""

    name: ClassVar[str] = "encode"
    campaign_path: Path
    values: Path
    clients: bool
    lines: int
    evaluator: Evaluator | None

    @property
    def records(self) -> int:
        return self.lines

    def graph(self, pipeline: beam.Pipeline, place: Place) -> None:
        encode = Encode(str(self.campaign_path), self.clients, self.lines, self.evaluator)
        encoded = (
            pipeline
            | "file" >> beam.Create([str(self.values)], reshuffle=False)
            | "lines" >> beam.ParDo(ReadChunks())
            | "spread" >> beam.Reshuffle()
            | "encode" >> beam.ParDo(encode).with_outputs("reports", "discovery", "counts")
        )
        files, orders = max(1, -(-self.lines // _CHUNK_LINES)), Listed((Order(place.directory),))
        for stream in self.campaign.streams:
            record_bytes = envelope_dtype(self.campaign.sealed_bytes(stream)).itemsize
            shards = encoded[stream] | f"all of {stream}" >> beam.ParDo(ShardOfOrder())
            shards | f"write {stream}" >> WriteShards(
                FolderOf(orders, (stream,)), ENVELOPES[stream], self.campaign, record_bytes, files
            )
        encoded.counts | "all counts" >> beam.ParDo(OfOrder()) | "counts" >> WriteCounts(FolderOf(orders))

    def finish(self, place: Place, sums: Mapping[str, int], charge: Charging) -> Finished:
        campaign, senders = self.campaign, Senders("client-token" if self.clients else "none")
        summary = make_summary("encode", campaign, counts_of(sums, campaign.streams), None, senders=senders)
        if not summary.accepted:
            first = summary.streams[campaign.streams[0]].rejected
            reasons = ", ".join(f"{reason} {number:,}" for reason, number in first.items())
            raise UsageError(f"no line of {self.values} could be sent ({reasons}): nothing was written")
        return Finished(summary, None)


def plan_encode(
    campaign_path: Path,
    values: Path,
    out: str,
    *,
    clients: bool = False,
    evaluator: Evaluator | None = None,
    overwrite: bool = False,
    console: Console | None = None,
) -> EncodeJob:
    """Plan to privatise and seal every line of a file, and to write the envelopes to `reports/` and `discovery/`.

    Args:
        values: one value a line, UTF-8, text or .gz; with `clients`, client<TAB>value. In a campaign with axes, a tab
            and a coordinate on each axis follow.
        clients: whether lines name their client. If lines do not name clients, every line counts as a line of another
            client, so the output's guarantees hold for one line, not for one client.
        evaluator: where to read the evaluator's key, which an oblivious campaign needs to name values.
        console: prints a warning if the lines seem to name their client.

    Raises:
        UsageError: a file is missing or invalid, there are no values or they are not UTF-8 text, `out` is taken, the
            environment names an unknown opening engine, or the campaign is oblivious and no evaluator's key is named.
        RetiredKey: the evaluator's key was destroyed.
    """
    campaign = Campaign.read(campaign_path)
    evaluator = None if campaign.discovery is None else namer(campaign, evaluator)
    if evaluator is not None:
        if evaluator.is_address:
            raise UsageError(
                f"evaluator is {evaluator.source}: encode needs evaluations for many clients, but an evaluator answers "
                "only a few to each caller: give a directory with the evaluator's key"
            )
        evaluator.require(campaign)
    # Read the dictionary, and check the keys and the environment, before any work.
    ManyClients(campaign)
    require_opening_engine()
    if clients and campaign.memory:
        raise UsageError(
            f"clients of campaign {campaign.id} have a memory, but encode keeps no answers from line to line: leave "
            "--clients out, so that every line counts as another client"
        )
    require_free(out, overwrite, ("encode",), (values, campaign_path))
    total = sum(1 for _ in read_lines(values))
    if not total:
        raise UsageError(f"{values} holds no values: give one value a line")
    tabbed = all(line.count(b"\t") > len(campaign.axis_names) for line in islice(read_lines(values), _LOOKED_AT))
    if console is not None and not clients and tabbed:
        console.print(
            f"warning: the first lines of {values} hold a tab too many: if they are client<TAB>value, add --clients"
        )
    return EncodeJob(
        campaign=campaign,
        to=Output(out, overwrite),
        lines=total,
        campaign_path=campaign_path.absolute(),
        values=values.absolute(),
        clients=clients,
        evaluator=evaluator,
    )


@with_input_types(str)
@with_output_types(tuple[int, list[bytes]])
class ReadChunks(beam.DoFn):
    """Path of a file in, (chunk number, lines of the chunk) out."""

    def process(self, path: str) -> Iterator[tuple[int, list[bytes]]]:
        lines, number = read_lines(Path(path)), 0
        while chunk := list(islice(lines, _CHUNK_LINES)):
            yield number, chunk
            number += 1


@with_input_types(tuple[int, list[bytes]])
class Encode(beam.DoFn):
    """(chunk number, lines) in; for each stream (chunk number, envelopes) out, tagged with the stream's name.

    Dropped lines are counted in "counts", but not kept, because they contain plain values. Reasons: not_utf8;
    no_client, a line without a name and a tab, if lines name clients; value_too_long. For a value that is too long, the
    client sends a discovery report without a value, because a missing report would reveal something about the value.
    """

    def __init__(self, campaign_path: str, clients: bool, lines: int, evaluator: Evaluator | None = None) -> None:
        self._campaign_path, self._clients, self._lines = campaign_path, clients, lines
        self._evaluator = evaluator

    def setup(self) -> None:
        campaign = Campaign.read(self._campaign_path)
        seal = sealing_for(self._lines * len(campaign.streams))
        ask = None if self._evaluator is None else self._evaluator.ask(campaign)
        self._client = ManyClients(campaign, ask=ask, seal_rows=seal)
        self._threads = available_threads()

    def process(self, element: tuple[int, list[bytes]]) -> Iterator[Any]:
        number, lines = element
        envelopes: dict[Stream, list[bytes]] = {stream: [] for stream in self._client.campaign.streams}
        for start in range(0, len(lines), _AT_ONCE):
            yield from self._some(lines[start : start + _AT_ONCE], number, envelopes)
        for stream, parts in envelopes.items():
            yield TaggedOutput(stream, (number, b"".join(parts)))

    def _some(self, lines: list[bytes], chunk: int, envelopes: dict[Stream, list[bytes]]) -> Iterator[TaggedOutput]:
        """Add the envelopes of these lines to the list of each stream in `envelopes`, and yield the counts of lines."""
        senders, values, refused = _parse(lines, self._clients, self._client.campaign.fingerprint)
        for stream, parts in envelopes.items():
            for reason, lost in (("received", len(lines)), *refused.items()):
                yield TaggedOutput("counts", (f"{stream}:{reason}", lost))
            sealed, too_long = self._seal(stream, values)
            if values:
                parts.append(_envelopes(senders, sealed, chunk))
            yield TaggedOutput("counts", (f"{stream}:accepted", len(values) - too_long))
            if too_long:
                yield TaggedOutput("counts", label(rejected("value_too_long", too_long), stream))

    def _seal(self, stream: str, values: list[str]) -> tuple[Octets, int]:
        """Return the sealed reports of a stream, and how many values were too long for a report."""
        if stream == "reports":
            return self._client.measured(values, self._threads), 0
        campaign, listed = self._client.campaign, self._client.dictionary or ()
        values = [measured(campaign, value).value for value in values]
        sent = [None if value not in listed and campaign.is_too_long(value) else value for value in values]
        return self._client.discovery_reports(sent, self._threads), sent.count(None)


def envelopes_of(campaign: Campaign, values: list[str], clock: Clock) -> bytes:
    """Return an envelope with a frequency report of each value, each of another client.

    Args:
        clock: tells the window that reports of a campaign with noise name.
    """
    senders, values, _ = _parse([value.encode() for value in values], False, campaign.fingerprint)
    client = ManyClients(campaign, seal_rows=sealing_for(len(values)), clock=clock)
    return _envelopes(senders, client.measured(values, available_threads()), 0)


def _parse(lines: list[bytes], clients: bool, campaign: bytes) -> tuple[Octets, list[str], Counter[Reason]]:
    """Return the senders' tokens and the values of the accepted lines, and the number of refused lines by reason."""
    tokens, values = [], []
    refused: Counter[Reason] = Counter()
    for line in lines:
        name, tab, value = line.partition(b"\t") if clients else (b"", b"", line)
        if clients and not (name and tab):
            refused["no_client"] += 1
            continue
        try:
            text, token = value.decode(), client_token(name.decode(), campaign) if clients else b""
        except UnicodeDecodeError:
            refused["not_utf8"] += 1
            continue
        values.append(text)
        tokens.append(token)
    if clients:
        return np.frombuffer(b"".join(tokens), np.uint8).reshape(-1, TOKEN_BYTES), values, refused
    fresh = SystemWords().words(2 * len(values)).view(np.uint8).reshape(-1, TOKEN_BYTES)
    return fresh, values, refused


def _envelopes(tokens: Octets, sealed: Octets, chunk: int) -> bytes:
    """Return envelopes with the metadata that a network adds: a time of arrival and an address of the sender."""
    envelopes = np.zeros(len(sealed), dtype=envelope_dtype(sealed.shape[1]))
    arrived = np.uint64(1000 * MACHINE.seconds()) + np.arange(len(sealed), dtype=np.uint64) + np.uint64(chunk)
    envelopes["client_token"] = _as_records(tokens)
    envelopes["received_ms"] = arrived
    local = np.full((len(tokens), 1), _LOCAL_PREFIX, dtype=np.uint8)
    envelopes["address"] = _as_records(np.concatenate([local, tokens[:, 1:]], axis=1)).view("V16")
    envelopes["sealed"] = _as_records(sealed)
    return envelopes.tobytes()


def _as_records(rows: Octets) -> npt.NDArray[np.bytes_]:
    return np.ascontiguousarray(rows).view(f"S{rows.shape[1]}").reshape(-1)
