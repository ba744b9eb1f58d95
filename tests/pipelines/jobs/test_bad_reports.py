"""Reports that are damaged, foreign, copied or made up: each costs itself alone, with a reason and a count."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path

import numpy as np
import pytest

from hushcount.campaigns.campaign import Campaign
from hushcount.collection.envelopes import client_token, envelope_dtype
from hushcount.discovery.pairs import HASH_BYTES
from hushcount.many_clients import ManyClients
from hushcount.oracles import tally as tally_files
from hushcount.oracles.tally import Tally
from hushcount.wire.blocks import encode_header
from hushcount.wire.fields import report_values
from hushcount.wire.sealing import Octets, Sealer
from keys.private import PrivateKey
from tests.pipelines.conftest import ON_BEAM, World
from tests.support.jobs import Chain, cli, done, found, new_campaign, refused, summary
from tests.support.records import (
    ENVELOPES,
    as_set,
    dead_letters,
    envelopes,
    file_bytes,
    in_order,
    plain_reports,
    private_key,
    read_file,
    read_rows,
    rows_of,
    write_envelopes,
    write_shuffled,
    write_summary,
)

GOOD = 120


@dataclass(frozen=True)
class Bench:
    """A campaign of subsets, which has room for malformed reports, and good reports for it."""

    chain: Chain
    other: Campaign
    sealed: Octets
    discovery: Octets

    @property
    def campaign(self) -> Campaign:
        return self.chain.campaign

    @property
    def analyzer(self) -> Sealer:
        return Sealer(private_key(self.chain.keys, "analyzer").public_key)

    @property
    def aux_server(self) -> Sealer:
        return Sealer(private_key(self.chain.keys, "aux_server").public_key)


@pytest.fixture(scope="session")
def bench(world: World) -> Bench:
    options = {"mechanism": "ss", "epsilon": 1.0, "dictionary": world.dictionary, "discovery": 2.0, "min_batch": 10}
    path = new_campaign(world.root / "bench.json", world.keys, **options)
    other = new_campaign(world.root / "bench2.json", world.keys, **options)
    client = ManyClients(Campaign.read(path))
    discovery = client.discovery_reports([f"unlisted {index % 2}" for index in range(GOOD)])
    return Bench(Chain(path, world.keys), Campaign.read(other), client.reports(["alpha"] * GOOD), discovery)


def tally_of(directory: Path, campaign: Campaign) -> Tally:
    with (directory / "tally.npz").open("rb") as stream:
        return tally_files.load(stream, campaign.fingerprint)


def expected_tally(bench: Bench, sealed: Octets) -> np.ndarray:
    """Add opened reports up without any pipeline."""
    mechanism = bench.campaign.require_frequency()
    reports, valid = mechanism.unpack(plain_reports(bench.campaign, bench.chain.keys, sealed))
    assert valid.all()
    items = np.arange(mechanism.encoder.domain, dtype=np.uint64)
    counts = mechanism.new_tally(items)
    mechanism.accumulate(counts, reports, items)
    return counts


def flipped(row: Octets, byte: int) -> Octets:
    changed = row.copy()
    changed[byte] ^= 1
    return changed


def cut_short(bench: Bench) -> list[Octets]:
    """Truncated, and filled up to the record length with zeros, as a careless collector might."""
    return [
        np.concatenate([row[:-cut], np.zeros(cut, np.uint8)]) for row, cut in zip(bench.sealed, (16, 40), strict=False)
    ]


def bit_flipped(bench: Bench) -> list[Octets]:
    """One bit in the ephemeral key, in the authenticator, and in the body."""
    return [flipped(row, byte) for row, byte in zip(bench.sealed, (0, 33, -1), strict=False)]


def to_a_wrong_key(bench: Bench) -> list[Octets]:
    stranger = Sealer(PrivateKey.generate().public_key)
    plain = plain_reports(bench.campaign, bench.chain.keys, bench.sealed[:3])
    bound = [bench.campaign.binding("reports") + row.tobytes() for row in plain]
    return list(rows_of([stranger.seal(row) for row in bound]))


def noise(bench: Bench) -> list[Octets]:
    size = bench.sealed.shape[1]
    return [np.zeros(size, np.uint8), np.full(size, 255, np.uint8), np.arange(size).astype(np.uint8)]


def of_another_campaign(bench: Bench) -> list[Octets]:
    """Of the same mechanism, sealed to the same key: only the fingerprint tells them apart."""
    return list(ManyClients(bench.other, dictionary=bench.campaign.read_dictionary()).reports(["alpha"] * 4))


def of_the_other_stream(bench: Bench) -> list[Octets]:
    plain = plain_reports(bench.campaign, bench.chain.keys, bench.sealed[:1])[0].tobytes()
    return list(rows_of([bench.analyzer.seal(bench.campaign.binding("discovery") + plain)]))


def malformed(bench: Bench) -> list[Octets]:
    """Well sealed, of this campaign, and the number of no report: the first that is too large, the next, the last."""
    mechanism = bench.campaign.require_frequency()
    first, length = report_values(mechanism.fields), mechanism.report_bytes
    binding = bench.campaign.binding("reports")
    made = [number.to_bytes(length, "little") for number in (first, first + 1, 256**length - 1)]
    return list(rows_of([bench.analyzer.seal(binding + octets) for octets in made]))


BAD: dict[str, tuple[Callable[[Bench], list[Octets]], str]] = {
    "cut short": (cut_short, "not_opened"),
    "bit flipped": (bit_flipped, "not_opened"),
    "wrong key": (to_a_wrong_key, "not_opened"),
    "noise": (noise, "not_opened"),
    "other campaign": (of_another_campaign, "wrong_campaign"),
    "other stream": (of_the_other_stream, "wrong_campaign"),
    "malformed": (malformed, "malformed"),
}


def silent_about(payloads: Octets, *texts: str) -> bool:
    """Return whether no text holds a payload, raw, in hexadecimal or as Python writes bytes."""
    everything = "".join(texts)
    pieces = [row.tobytes()[start : start + 12] for row in payloads for start in (0, 32, 48)]
    forms = [form for piece in pieces for form in (piece.hex(), repr(piece)[2:-1], piece.decode("latin-1"))]
    return not any(form in everything for form in forms if len(form) >= 12)


@dataclass(frozen=True)
class Analysed:
    """A result of good reports among bad ones of every kind, and all that was said on the way."""

    out: Path
    bad: dict[str, Octets]
    mixed: Octets
    said: tuple[str, ...]


@pytest.fixture(scope="module", params=["plain", pytest.param("beam", marks=ON_BEAM)])
def analysed(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Analysed:
    root, kinds = tmp_path_factory.mktemp("kinds"), {}
    for make, reason in BAD.values():
        kinds.setdefault(reason, []).extend(make(bench))
    bad = {reason: np.stack(rows) for reason, rows in kinds.items()}
    first, *others = bad.values()
    parts = [np.concatenate([bench.sealed[:50], first, bench.sealed[50:]]), *others]
    source = write_shuffled(root / "in", bench.campaign, {"reports": parts})
    common = ("--campaign", bench.chain.campaign_path, "--keys", bench.chain.keys)
    logged = StringIO()
    handler, level = logging.StreamHandler(logged), logging.root.level
    logging.root.addHandler(handler)
    logging.root.setLevel(logging.DEBUG)
    try:
        run = done("job", "analyze", *common, "--input", source, "--out", root / "out")
    finally:
        logging.root.setLevel(level)
        logging.root.removeHandler(handler)
    return Analysed(root / "out", bad, np.concatenate(parts), (run.out, run.err, logged.getvalue()))


def test_analyze_drops_it_counts_it_and_keeps_it_apart(analysed: Analysed) -> None:
    assert summary(analysed.out)["streams"]["reports"] == {
        "received": GOOD + sum(map(len, analysed.bad.values())),
        "accepted": GOOD,
        "rejected": {reason: len(rows) for reason, rows in analysed.bad.items()},
    }
    letters = {reason: in_order(rows) for reason, rows in dead_letters(analysed.out, "reports").items()}
    assert letters == {reason: in_order(rows) for reason, rows in analysed.bad.items()}
    assert silent_about(analysed.mixed, *analysed.said)


def test_all_kinds_at_once(bench: Bench, analysed: Analysed) -> None:
    """They cost no good report, and add nothing to the tally."""
    tally = tally_of(analysed.out, bench.campaign)
    assert tally.reports == GOOD
    assert np.array_equal(tally.counts, expected_tally(bench, bench.sealed))


def test_silent_about_can_fail(bench: Bench) -> None:
    row = bench.sealed[0].tobytes()
    assert not silent_about(bench.sealed, f"dropped {row!r}")
    assert not silent_about(bench.sealed, f"dropped {row.hex()}")


def shuffle(bench: Bench, tmp_path: Path, status: int = 0) -> Path:
    run = cli(
        "job", "shuffle", "--campaign", bench.chain.campaign_path, "--input", tmp_path / "in", "--out", tmp_path / "out"
    )
    assert run.status == status, run.err
    return tmp_path / "out"


def discovery_envelopes(bench: Bench, directory: Path) -> None:
    write_envelopes(directory, bench.campaign, "discovery", envelopes(bench.campaign, bench.discovery))


def expect(directory: Path, accepted: int, **rejected: int) -> None:
    counts = summary(directory)["streams"]["reports"]
    assert counts == {"received": accepted + sum(rejected.values()), "accepted": accepted, "rejected": rejected}
    assert summary(directory)["streams"]["discovery"] == {"received": GOOD, "accepted": GOOD, "rejected": {}}


@pytest.mark.usefixtures("either_engine")
def test_a_report_uploaded_again_counts_once(bench: Bench, tmp_path: Path) -> None:
    rows = envelopes(bench.campaign, bench.sealed)
    write_envelopes(tmp_path / "in", bench.campaign, "reports", np.concatenate([rows, rows[:7], rows[:2]]), "a")
    write_envelopes(tmp_path / "in", bench.campaign, "reports", rows[5:6], "b")
    discovery_envelopes(bench, tmp_path / "in")
    out = shuffle(bench, tmp_path)
    expect(out, GOOD, duplicate=10)
    # Which reports were retried is nothing that anyone should keep.
    assert not list(out.rglob("dead_letter"))
    assert len(read_rows(out / "reports")) == GOOD
    assert as_set(read_rows(out / "reports")) == as_set(bench.sealed)


@pytest.mark.parametrize("replay_first_in_file", [True, False])
def test_a_replay_under_another_token_never_takes_the_place_of_the_original(
    bench: Bench, tmp_path: Path, replay_first_in_file: bool
) -> None:
    """Of the thief's copies its cap lets one through, which is then a duplicate; every victim's report stays, once.

    Whether the copies come first in the file, or claim to have been received first, makes no difference.
    """
    victims = envelopes(bench.campaign, bench.sealed)
    copies = envelopes(
        bench.campaign,
        bench.sealed[:30],
        clients=["thief"] * 30,
        received_ms=[(1 if replay_first_in_file else 1_800_000_000_000) + index for index in range(30)],
    )
    parts = (copies, victims) if replay_first_in_file else (victims, copies)
    write_envelopes(tmp_path / "in", bench.campaign, "reports", np.concatenate(parts))
    discovery_envelopes(bench, tmp_path / "in")
    out = shuffle(bench, tmp_path)
    expect(out, GOOD, duplicate=1, over_cap=29)
    assert len(read_rows(out / "reports")) == GOOD
    assert as_set(read_rows(out / "reports")) == as_set(bench.sealed)


def test_dead_letters_of_the_shuffler_carry_no_metadata_and_no_order(bench: Bench, tmp_path: Path) -> None:
    """Duplicates, and a whole file of another campaign: token, address and time go to nobody.

    The order of arrival would survive with probability 1/60!.
    """
    rows = envelopes(bench.campaign, bench.sealed)
    write_envelopes(tmp_path / "in", bench.campaign, "reports", np.concatenate([rows, rows[:9]]))
    foreign = envelopes(bench.other, bench.sealed[:60], clients=[f"foreigner {index}" for index in range(60)])
    path = tmp_path / "in" / "reports" / "foreign.blocks"
    path.write_bytes(file_bytes(ENVELOPES["reports"], foreign, bench.other.fingerprint, bench.other.id))
    discovery_envelopes(bench, tmp_path / "in")
    out = shuffle(bench, tmp_path)
    expect(out, GOOD, duplicate=9, wrong_campaign=60)
    letters = dead_letters(out, "reports")["wrong_campaign"]
    assert in_order(letters) == in_order(bench.sealed[:60])
    assert letters.tobytes() != bench.sealed[:60].tobytes()
    content = b"".join(path.read_bytes() for path in out.rglob("*") if path.is_file())
    tokens = [client_token(f"client {index}", bench.campaign.fingerprint) for index in range(GOOD)]
    tokens += [client_token(f"foreigner {index}", bench.other.fingerprint) for index in range(60)]
    assert not any(token[1:] in content for token in tokens)
    assert bench.sealed[0].tobytes()[:16] in content


def test_files_of_records_of_wrong_length(bench: Bench, tmp_path: Path) -> None:
    """Of a record shorter than an envelope's metadata nothing can be kept; it is counted, and the job goes on."""
    write_envelopes(tmp_path / "in", bench.campaign, "reports", envelopes(bench.campaign, bench.sealed), "good")
    short = envelopes(bench.campaign, bench.sealed[:6, :-1])
    write_envelopes(tmp_path / "in", bench.campaign, "reports", short, "short")
    tiny = np.arange(10 * 6, dtype=np.uint8).reshape(6, 10)
    write_envelopes(tmp_path / "in", bench.campaign, "reports", tiny, "tiny")
    discovery_envelopes(bench, tmp_path / "in")
    out = shuffle(bench, tmp_path)
    expect(out, GOOD, wrong_length=12)
    content = b"".join(path.read_bytes() for path in out.rglob("*") if path.is_file())
    assert tiny.tobytes()[:10] not in content
    assert as_set(read_rows(out / "reports")) == as_set(bench.sealed)
    # Where metadata ends is known from this campaign's layout, so nothing that might be metadata is kept.
    strip = envelope_dtype(bench.sealed.shape[1]).itemsize - bench.sealed.shape[1]
    assert in_order(dead_letters(out, "reports")["wrong_length"]) == in_order(short[:, strip:])


def test_a_corrupt_block_costs_its_own_records(bench: Bench, tmp_path: Path) -> None:
    rows = envelopes(bench.campaign, bench.sealed)
    write_envelopes(tmp_path / "in", bench.campaign, "reports", rows[:100], "good")
    path = write_envelopes(tmp_path / "in", bench.campaign, "reports", rows[100:], "bad")
    raw = bytearray(path.read_bytes())
    raw[-5] ^= 64
    path.write_bytes(raw)
    discovery_envelopes(bench, tmp_path / "in")
    out = shuffle(bench, tmp_path)
    expect(out, 100, corrupt_block=GOOD - 100)
    assert as_set(read_rows(out / "reports")) == as_set(bench.sealed[:100])


def test_a_header_that_promises_more_than_the_file_holds_costs_no_time(bench: Bench, tmp_path: Path) -> None:
    """Whoever makes a right checksum over 2**60 records gets them counted as cut off, and the job ends."""
    write_envelopes(tmp_path / "in", bench.campaign, "reports", envelopes(bench.campaign, bench.sealed), "good")
    header, _ = read_file(tmp_path / "in" / "reports" / "good.blocks")
    liar = encode_header(replace(header, records=1 << 60))
    (tmp_path / "in" / "reports" / "liar.blocks").write_bytes(liar + bytes(1000))
    discovery_envelopes(bench, tmp_path / "in")
    expect(shuffle(bench, tmp_path), GOOD, truncated=1 << 60)


def test_a_file_that_is_not_what_its_header_must_say_is_refused_by_name(bench: Bench, tmp_path: Path) -> None:
    write_envelopes(tmp_path / "in", bench.campaign, "reports", envelopes(bench.campaign, bench.sealed), "good")
    rows = envelopes(bench.campaign, bench.sealed[:1])
    path = write_envelopes(tmp_path / "in", bench.campaign, "reports", rows, "hurt")
    discovery_envelopes(bench, tmp_path / "in")
    whole = path.read_bytes()
    arguments = ("job", "shuffle", "--campaign", bench.chain.campaign_path, "--input", tmp_path / "in", "--out")
    damages = {
        "damaged header": [*(_flip(whole, byte) for byte in (9, 20, 40, 127, 131)), whole[:60]],
        "not a Hushcount block file": [_flip(whole, 0), b"", b"garbage", whole[:3]],
        # Longer than its header says, and of the other stream.
        "bytes": [whole + b"\0"],
        "discovery_envelopes": [
            file_bytes(ENVELOPES["discovery"], rows, bench.campaign.fingerprint, bench.campaign.id)
        ],
    }
    for says, contents in damages.items():
        for content in contents:
            path.write_bytes(content)
            refused(*arguments, tmp_path / "out", says=[str(path), says])
            assert not (tmp_path / "out").exists()
    path.write_bytes(whole)
    # One report is then a copy of the good file's first.
    expect(shuffle(bench, tmp_path), GOOD, duplicate=1)


def _flip(raw: bytes, byte: int) -> bytes:
    changed = bytearray(raw)
    changed[byte] ^= 4
    return bytes(changed)


# Discovery: the auxiliary server's layer, then the analyzer's.


def discover(bench: Bench, tmp_path: Path, rows: Octets) -> Path:
    source = write_shuffled(tmp_path / "in", bench.campaign, {"discovery": [rows]})
    _add_shuffle_hop(source, bench.campaign, len(rows))
    common = ("--campaign", bench.chain.campaign_path, "--keys", bench.chain.keys)
    done("job", "discover", *common, "--input", source, "--out", tmp_path / "out")
    return tmp_path / "out"


def _add_shuffle_hop(directory: Path, campaign: Campaign, accepted: int) -> None:
    write_summary(directory, campaign, {"discovery": {"received": accepted, "accepted": accepted, "rejected": {}}})


def pair(bench: Bench, bin_hash: bytes, value: bytes) -> bytes:
    """Seal a pair of a bin's hash and whatever stands for the sealed value."""
    return bench.aux_server.seal(bench.campaign.binding("discovery") + bin_hash + value)


@pytest.mark.usefixtures("either_engine")
def test_the_auxiliary_server_drops_what_it_cannot_open_or_what_is_foreign(bench: Bench, tmp_path: Path) -> None:
    foreign = ManyClients(bench.other, dictionary=bench.campaign.read_dictionary()).discovery_reports(
        ["unlisted 0"] * 3
    )
    hurt = np.stack([flipped(row, 70) for row in bench.discovery[:5]])
    out = discover(bench, tmp_path, np.concatenate([hurt, bench.discovery, foreign]))
    assert summary(out)["streams"]["discovery"] == {
        "received": GOOD + 8,
        "accepted": GOOD,
        "rejected": {"not_opened": 5, "wrong_campaign": 3},
    }
    letters = dead_letters(out, "discovery")
    assert in_order(letters["not_opened"]) == in_order(hurt)
    assert in_order(letters["wrong_campaign"]) == in_order(foreign)
    assert found(out) == ["unlisted 0", "unlisted 1"]


def test_copies_of_a_discovery_report_count_once_and_reveal_nothing(bench: Bench, tmp_path: Path) -> None:
    """As a dishonest shuffler would send them. One report is kept with probability 2.5e-10 at most."""
    copied = np.repeat(
        ManyClients(bench.campaign).discovery_reports(["only one client's"]),
        500,
        axis=0,
    )
    out = discover(bench, tmp_path, np.concatenate([copied, bench.discovery, bench.discovery[:3]]))
    assert found(out) == ["unlisted 0", "unlisted 1"]
    assert summary(out)["streams"]["discovery"] == {
        "received": GOOD + 503,
        "accepted": GOOD + 1,
        "rejected": {"duplicate": 502},
    }


def test_pairs_that_no_honest_client_makes_are_not_believed_and_cost_no_honest_bin(
    bench: Bench, tmp_path: Path
) -> None:
    """Poison of many kinds, each sent often enough for a bin of its own: none is found, and the honest bins are."""
    form = bench.campaign.discovery_format
    poison = "poison"
    inner = {
        "another value": bench.analyzer.seal(form.binding + form.pad("something else")),
        "no box": bytes(form.sealed_value_bytes),
        "other campaign": bench.analyzer.seal(bench.other.binding("discovery") + form.pad(poison)),
        "bad padding": bench.analyzer.seal(form.binding + b"\x03\x00" + b"abcd".ljust(form.max_value_bytes, b"\0")),
        "not UTF-8": bench.analyzer.seal(form.binding + b"\x02\x00" + b"\xff\xfe".ljust(form.max_value_bytes, b"\0")),
        "too long": bench.analyzer.seal(form.binding + b"\xff\x0f" + b"a" * form.max_value_bytes),
        "sealed anew": bench.analyzer.seal(form.binding + form.pad(poison)),
    }
    bad = [pair(bench, form.hash(poison), sealed) for sealed in inner.values() for _ in range(60)]
    # Under the hash of an honest bin as well.
    bad += [pair(bench, form.hash("unlisted 0"), inner["another value"]) for _ in range(60)]
    out = discover(bench, tmp_path, np.concatenate([rows_of(bad), bench.discovery]))
    assert found(out) == ["unlisted 0", "unlisted 1"]
    kinds = len(inner) + 1
    assert summary(out)["bins"] == {"kept": kinds + 2, "found": 2, "rejected": {"unverified": kinds}}


def test_a_value_that_may_be_no_item_is_not_let_into_a_table(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # An honest client would send none of them.
    monkeypatch.setattr("hushcount.report_making.fault_of_text", lambda _: None)
    client = ManyClients(bench.campaign)
    values = ["", "a\rb", "a\nb", "a\0b", "tab\t", "\x1b[31mred", "a\u2028b", 'fine, "quoted" = ü']
    rows = client.discovery_reports([value for value in values for _ in range(60)])
    out = discover(bench, tmp_path, rows)
    assert found(out) == [values[-1]]
    assert summary(out)["bins"] == {"kept": 8, "found": 1, "rejected": {"no_item": 7}}


def test_nothing_to_discover_is_never_found_even_if_many_send_one_hash(bench: Bench, tmp_path: Path) -> None:
    """A listed value's report has a random hash; whoever makes many of one hash gains a bin without a value."""
    form = bench.campaign.discovery_format
    empty = bench.analyzer.seal(form.binding + form.pad(None))
    bad = [pair(bench, b"\x07" * HASH_BYTES, empty) for _ in range(60)]
    out = discover(bench, tmp_path, np.concatenate([bench.discovery, rows_of(bad)]))
    assert found(out) == ["unlisted 0", "unlisted 1"]
    assert summary(out)["bins"]["rejected"] == {"nothing": 1}


@pytest.mark.parametrize(("stream", "cut"), [("reports", False), ("discovery", True)])
def test_what_the_shuffler_wrote_and_cannot_be_read_fails_the_job(
    bench: Bench, tmp_path: Path, stream: str, cut: bool
) -> None:
    """It was whole when it was written: a result without it would be another one, and nobody would ask why."""
    write_envelopes(tmp_path / "in", bench.campaign, "reports", envelopes(bench.campaign, bench.sealed))
    discovery_envelopes(bench, tmp_path / "in")
    out = shuffle(bench, tmp_path)
    path = next((out / stream).glob("*.blocks"))
    raw = bytearray(path.read_bytes())
    raw[-5] ^= 64
    path.write_bytes(raw[:-9] if cut else raw)
    job = ("job", "analyze") if stream == "reports" else ("job", "discover", "--uncapped")
    common = ("--campaign", bench.chain.campaign_path, "--keys", bench.chain.keys, "--ledger", tmp_path / "ledger.db")
    says = [
        f"files of {out / stream}, which a party of this system wrote, are damaged",
        "truncated" if cut else "corrupt_block",
        "nothing was released",
    ]
    refused(*job, *common, "--input", out, "--out", tmp_path / "made", status=1, says=says)
    assert not (tmp_path / "made").exists()
    assert done("ledger", "show", "--ledger", tmp_path / "ledger.db", "--json").json["charges"] == []
