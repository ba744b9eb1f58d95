"""The protocol on one page: encode, shuffle, analyze and discover in memory, with the functions that the jobs call.

A deployment does the same on files, in jobs that add counts, signatures, dead letters and the ledger. This script is
only an example, and not in the package, because no job calls it, and because it holds all parties' keys.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from analyzer.open_reports import well_formed
from analyzer.reveal import judge, open_pair
from aux_server.bins import bins_of
from aux_server.drawing import BinWords, draw_context, in_drawn_order
from aux_server.keep import kept_records
from aux_server.open_pairs import tagged_pairs
from hushcount.arrays import Octets
from hushcount.campaigns.campaign import Campaign, Stream
from hushcount.campaigns.dictionary import Dictionary, items_of, tally_items
from hushcount.collection.envelopes import client_token, envelope_dtype
from hushcount.discovery.pairs import keyed_name
from hushcount.errors import NotYet, TooFewOpened
from hushcount.estimating import estimated
from hushcount.many_clients import ManyClients
from hushcount.oracles.estimates import Estimate
from hushcount.oracles.tally import Tally
from hushcount.privacy.unit import rule_of
from hushcount.randomness import SystemWords
from hushcount.senders import Senders
from hushcount.wire.equality import first_of_equal
from hushcount.wire.tags import tag_keys
from keys.opening import Opener
from keys.private import PrivateKey
from shuffler.cap import cap_key, over_cap
from shuffler.mix import allowed, in_order, permuted
from shuffler.separate import Report, strip

TOLD_APART = Senders("client-token")
"""States that one collector told the clients apart by their tokens, in one window."""


@dataclass(frozen=True, eq=False)
class Learned:
    """What the analyzer learns: counts of the dictionary's items, in the dictionary's order, and discovered values."""

    tally: Tally
    estimate: Estimate
    found: frozenset[str]


def run_esa(
    campaign: Campaign,
    dictionary: Dictionary,
    analyzer: PrivateKey,
    aux_server: PrivateKey,
    sent: Sequence[tuple[str, str]],
) -> Learned:
    """Return what a campaign with both streams and keyed names learns; `sent` has pairs of client and value.

    Raises:
        NotYet, TooFewOpened: fewer reports than the minimum batch can be forwarded, or can be opened.
    """
    collected = collect(campaign, dictionary, sent)
    shuffled = {stream: shuffle(campaign, stream, envelopes) for stream, envelopes in collected.items()}
    tally = count(campaign, analyzer, shuffled["reports"])
    items = items_of(campaign.require_frequency(), dictionary, dictionary.items)
    released = release(campaign, aux_server, shuffled["discovery"])
    return Learned(tally, estimated(campaign, tally, items), reveal(campaign, analyzer, released))


def collect(campaign: Campaign, dictionary: Dictionary, sent: Sequence[tuple[str, str]]) -> dict[Stream, bytes]:
    """As clients: randomise and seal each value, for both streams. As a collector: note who sent each, and when."""
    # ManyClients has no limit on a client's reports, so only the shuffler's cap limits the reports of a client.
    clients = ManyClients(campaign, dictionary=dictionary)
    values = [value for _, value in sent]
    reports: dict[Stream, Octets] = {"reports": clients.reports(values), "discovery": clients.discovery_reports(values)}
    collected: dict[Stream, bytes] = {}
    for stream, sealed in reports.items():
        envelopes = np.zeros(len(sent), dtype=envelope_dtype(campaign.sealed_bytes(stream)))
        envelopes["client_token"] = [client_token(name, campaign.fingerprint) for name, _ in sent]
        envelopes["received_ms"] = np.arange(len(sent))
        envelopes["sealed"] = [report.tobytes() for report in sealed]
        collected[stream] = envelopes.tobytes()
    return collected


def shuffle(campaign: Campaign, stream: Stream, envelopes: bytes) -> bytes:
    """As the shuffler: strip metadata, drop reports over a client's cap and copies, and permute the other reports."""
    length, words = campaign.sealed_bytes(stream), SystemWords()
    sealed, claims = strip(envelopes, Report(length), tag_keys(length, words))
    over, _ = over_cap(claims, campaign.shuffle.cap, cap_key(words))
    sealed = sealed[allowed(claims["tag"], claims["tag"][over])]
    forwarded = permuted(first_of_equal(sealed), words)
    if not campaign.reaches_minimum(len(forwarded)):
        raise NotYet(f"{len(forwarded)} {stream} can be forwarded, fewer than the minimum batch", (stream,))
    return in_order(sealed, forwarded)


def count(campaign: Campaign, key: PrivateKey, sealed: bytes) -> Tally:
    """As the analyzer: open the reports, drop malformed reports, and add up the well-formed reports as integers."""
    mechanism = campaign.require_frequency()
    opener = Opener(key, campaign.binding("reports"), campaign.sealed_bytes("reports"), boxes=0)
    reports, _ = opener.open_block(sealed, partial(well_formed, mechanism))
    if not campaign.reaches_minimum(len(reports)):
        raise TooFewOpened(f"{len(reports)} reports could be opened, fewer than the minimum batch")
    items = tally_items(mechanism)
    tally = Tally(mechanism.new_tally(items), len(reports), items, TOLD_APART)
    mechanism.accumulate(tally.counts, reports, items)
    return tally


def release(campaign: Campaign, key: PrivateKey, sealed: bytes) -> list[bytes]:
    """As the auxiliary server: open its layer of the reports, count equal pairs, and draw which pairs are released."""
    form, rule = campaign.discovery_format, rule_of(campaign, TOLD_APART)
    opener = Opener(key, form.binding, form.sealed_bytes, boxes=0)
    pairs, _ = opener.open_block(sealed, partial(tagged_pairs, tag_keys(form.sealed_bytes, SystemWords())))
    bins = bins_of(pairs.tobytes(), form.pair_bytes)
    if not campaign.reaches_minimum(int(bins.counts.sum())):
        raise TooFewOpened(f"{bins.counts.sum()} discovery reports could be opened, fewer than the minimum batch")
    draw = key.derived(draw_context(campaign.fingerprint, rule, hashlib.blake2b(sealed).hexdigest()))
    return in_drawn_order(draw, list(kept_records(rule, bins, BinWords(draw, bins.pairs))))


def reveal(campaign: Campaign, key: PrivateKey, released: Sequence[bytes]) -> frozenset[str]:
    """As the analyzer: open released pairs, and accept values from which an honest client makes the same pairs."""
    form = campaign.discovery_format
    opened = [(record, open_pair(key, form, record)[1]) for record in released]
    return frozenset(
        value
        for record, value in opened
        if value is not None and judge(form, key.public_key, record, value, keyed_name(form, value)) == "accepted"
    )
