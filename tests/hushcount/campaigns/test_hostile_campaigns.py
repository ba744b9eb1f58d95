"""A campaign file of whoever wants to hang, fill or silence a client: refused at once, or every value gets a report."""

from __future__ import annotations

import gzip
import json
import os
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.delegation import verify_campaign
from hushcount.campaigns.dictionary import Dictionary, read_dictionary
from hushcount.campaigns.parts import portable
from hushcount.campaigns.signatures import SignatureError
from hushcount.client import Client
from hushcount.errors import UsageError
from hushcount.items import MOST_ITEM_BYTES
from hushcount.many_clients import ManyClients
from hushcount.oracles.catalogue import CATALOGUE
from hushcount.policy import Policy
from hushcount.wire.fields import MOST_BYTES
from hushcount.wire.sealing import SEAL_BYTES
from keys.directories import active_key, verify_keys
from keys.vouching import sign_campaign
from tests.hushcount.campaigns.test_campaign_file import WORDS, changed
from tests.support.jobs import done

SEED = "5" * 64
VALUES = ["one", "two", "three", "four", "", "\0", "\ud800", "x" * 5000, "\ufeff", "\U0001f600"]
LINE = "a line of another file of this user"


def written(folder: Path, **changes: Any) -> Path:
    path = folder / "campaign.json"
    data = changed("epoch", 1)
    for name, value in changes.items():
        data[name] = value
    path.write_text(json.dumps(data))
    return path


def dictionary_part(**changes: Any) -> dict[str, Any]:
    return {"path": "words.txt", "items": len(WORDS.items), "digest": WORDS.digest, **changes}


def test_a_mechanism_that_would_hang_or_fill_a_client_is_refused_when_it_is_read(
    subtests: pytest.Subtests, tmp_path: Path
) -> None:
    for number, (mechanism, items) in enumerate(
        [
            ({"name": "gcms", "parameters": {"k": 1024, "m": 1 << 20, "s": 282_000, "seed": SEED}}, 3),
            ({"name": "gcms", "parameters": {"k": 1 << 24, "m": 1024, "s": 3, "seed": SEED}}, 3),
            ({"name": "rappor", "parameters": {"k": 64, "m": 1 << 24, "seed": SEED}}, 3),
            ({"name": "oue", "parameters": {}}, (1 << 24) - 1),
            ({"name": "oue", "parameters": {}}, 1 << 31),
            ({"name": "ss", "parameters": {"s": 1 << 22}}, (1 << 24) - 1),
            ({"name": "ss", "parameters": {"s": 100_000}}, 1 << 19),
            ({"name": "gcms", "parameters": {"k": 10**4000, "m": 1024, "s": 3, "seed": SEED}}, 3),
        ]
    ):
        home = tmp_path / str(number)
        home.mkdir()
        with (
            subtests.test(name=mechanism["name"], items=items),
            pytest.raises(UsageError, match=r"must be|too many|is not JSON"),
        ):
            Campaign.read(
                written(home, mechanism={"epsilon": 1.0, **mechanism}, dictionary=dictionary_part(items=items))
            )


def test_a_dictionary_lies_beside_its_campaign_file_under_a_plain_name(
    subtests: pytest.Subtests, tmp_path: Path
) -> None:
    for number, path in enumerate(
        ["../words.txt", "/etc/passwd", "a/words.txt", "..", "", ".words", "a\\b", "C:words"]
    ):
        home = tmp_path / str(number)
        home.mkdir()
        with subtests.test(path=path), pytest.raises(UsageError, match=r"dictionary\.path"):
            Campaign.read(written(home, dictionary=dictionary_part(path=path)))


def pipe(path: Path) -> None:
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def one_long_line(path: Path) -> None:
    path.write_text("x" * (MOST_ITEM_BYTES + 10) + "\n")


def another_file(path: Path) -> None:
    path.write_text(f"{LINE}\n{LINE} and more\nthird\n")


def more_items(path: Path) -> None:
    path.write_text("".join(f"{item}\n" for item in (*WORDS.items, LINE)))


def test_a_file_that_is_not_the_dictionary_is_refused_and_nothing_of_it_is_told(
    subtests: pytest.Subtests, tmp_path: Path
) -> None:
    for number, make in enumerate([pipe, endless, one_long_line, another_file, more_items]):
        home = tmp_path / str(number)
        home.mkdir()
        with subtests.test(make=make.__name__):
            make(home / "words.txt")
            with pytest.raises(UsageError) as caught:
                Client(Campaign.read(written(home)), policy=Policy.trusting())
            told = str(caught.value)
            assert str(home / "words.txt") in told
            assert LINE not in told
            if make is another_file:
                assert Dictionary((LINE, f"{LINE} and more", "third")).digest not in told


def test_a_file_that_unpacks_to_a_thousand_times_its_size_is_not_unpacked(
    subtests: pytest.Subtests, tmp_path: Path
) -> None:
    path = tmp_path / "words.txt.gz"
    for line, refusal in ((b"x", "too long"), (b"y" * 100 + b"\n", "than the 3")):
        with gzip.open(path, "wb", compresslevel=1) as stream:
            for _ in range(1 << 3):
                stream.write(line * ((1 << 22) // len(line)))
        with subtests.test(line=line), pytest.raises(UsageError, match=refusal):
            read_dictionary(path, 3)


def test_a_campaign_that_says_another_number_of_items_than_its_file_has_makes_no_client(
    subtests: pytest.Subtests, tmp_path: Path
) -> None:
    """With fewer, who holds a later item could report nothing, and who is silent would tell."""
    for number, items in enumerate([1, 2, 4]):
        home = tmp_path / str(number)
        home.mkdir()
        with subtests.test(items=items):
            (home / "words.txt").write_text("".join(f"{item}\n" for item in WORDS.items))
            campaign = Campaign.read(written(home, dictionary=dictionary_part(items=items)))
            for given_one in (None, WORDS):
                with pytest.raises(UsageError, match=r"is not the campaign's|has more items"):
                    Client(campaign, policy=Policy.trusting(), dictionary=given_one)


numbers = st.integers(-1, 40) | st.sampled_from([64, 1000, 1 << 14, 1 << 17, 1 << 20, 1 << 31, 1 << 62])
parameters = st.dictionaries(
    st.sampled_from(["k", "m", "s", "B", "b", "f", "p"]), numbers | st.floats(0.0, 1.0), max_size=5
)


@given(
    name=st.sampled_from(sorted(set(CATALOGUE) - {"wss"})),
    epsilon=st.sampled_from([0.0001, 0.5, 1.0, 4.0, 20.0, 40.0]),
    listed=st.booleans(),
    chosen=parameters,
    cap=st.sampled_from([1, 1000]),
)
@settings(deadline=None, max_examples=150)
def test_a_campaign_is_refused_when_read_or_gives_every_value_a_report_of_one_length(
    name: str, epsilon: float, listed: bool, chosen: dict[str, Any], cap: int
) -> None:
    kind = CATALOGUE[name]
    allowed = {key: value for key, value in chosen.items() if key in (*kind.parameters, *kind.optional)}
    data = changed("mechanism", {"name": name, "epsilon": epsilon, "parameters": portable(allowed)})
    if kind.seeded:
        data["mechanism"]["parameters"]["seed"] = SEED
    data["shuffle"]["cap"] = cap
    if not listed:
        del data["dictionary"]
    try:
        campaign = Campaign.model_validate(data)
    except ValueError:
        return
    client = ManyClients(campaign, dictionary=WORDS if listed else None)
    length = campaign.sealed_bytes("reports")
    assert length <= 16 + MOST_BYTES + 8 + SEAL_BYTES
    assert {len(client.report(value)) for value in VALUES} == {length}


def test_a_signature_by_a_key_whose_time_is_over_is_refused(tmp_path: Path) -> None:
    done("keys", "new", "--role", "operator", "--out", tmp_path / "operator")
    campaign = Campaign.model_validate(changed("epoch", 1))
    signature = sign_campaign(active_key(tmp_path / "operator", "operator"), campaign)
    (key,) = keys = verify_keys(tmp_path / "operator", "operator")
    assert verify_campaign(keys, campaign, signature) == (key,)
    for moment in (key.not_after, key.not_before - timedelta(seconds=1), datetime(2200, 1, 1, tzinfo=timezone.utc)):
        with pytest.raises(SignatureError, match="fetch the newest campaign"):
            verify_campaign(keys, campaign, signature, moment)
