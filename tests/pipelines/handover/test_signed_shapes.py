"""A party that signs is hostile too: whatever it signed, its output is read, or refused in one sentence."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.public_keys import VerifyKeyPart
from hushcount.errors import HushcountError
from keys.directories import KeyReference, active_key, verify_keys
from pipelines.files import storage
from pipelines.handover.parties import hand_on
from pipelines.handover.signed import SIGNATURE
from pipelines.handover.upstream import check_complete, read_upstream
from pipelines.outputs.counts import Opening, StreamCounts
from pipelines.outputs.staging import Output
from pipelines.outputs.summary import make_summary
from pipelines.outputs.withheld import is_withheld
from tests.support.jobs import done
from tests.support.site import Site

STREAMS = ("reports", "discovery")


@dataclass(frozen=True)
class Handed:
    """An output without a record, and the key of the party that signs it."""

    directory: Path
    campaign: Campaign
    key: KeyReference
    trusted: tuple[VerifyKeyPart, ...]

    @property
    def genuine(self) -> dict[str, Any]:
        return dict(json.loads((self.directory / "genuine.json").read_text()))

    def read(self, summary: object) -> None:
        """Sign this as the summary and read all that a next party counts on, of every stream."""
        raw = json.dumps(summary).encode()
        (self.directory / "summary.json").write_bytes(raw)
        (self.directory / SIGNATURE).write_text(self.key.sign(raw, "summary").model_dump_json())
        for stream in STREAMS:
            found = read_upstream(str(self.directory), "shuffle", self.campaign, self.trusted, stream)
            check_complete(found, self.campaign, stream, [], exact=True)  # type: ignore[arg-type]
            is_withheld(found)
            found.digest()


@pytest.fixture(scope="module")
def handed(tmp_path_factory: pytest.TempPathFactory) -> Handed:
    site = Site(tmp_path_factory.mktemp("shapes"), discovery=True)
    done("keys", "new", "--role", "shuffler", "--out", site.root / "shuffler")
    campaign, directory = Campaign.read(site.campaign), site.root / "shuffled"
    for stream in STREAMS:
        (directory / stream).mkdir(parents=True)
        (directory / stream / "0.txt").write_text(stream)
    key = active_key(site.root / "shuffler", "shuffler")
    counts = dict.fromkeys(STREAMS, StreamCounts(0, 0, {}))
    summary = make_summary("shuffle", campaign, counts, None, opening=Opening(3, 2, 1))  # type: ignore[arg-type]
    summary = hand_on(str(directory), Output(str(directory), signer=key), STREAMS, summary)
    storage.write_json(str(directory / "genuine.json"), summary.data())
    return Handed(directory, campaign, key, verify_keys(site.root / "shuffler", "shuffler"))


def places(value: object, at: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Return where something stands in a summary, from the whole on."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(place for key, part in inner for place in places(part, (*at, key)))]


def replaced(value: Any, at: tuple[str | int, ...], by: Callable[[Any], Any]) -> Any:
    if not at:
        return by(value)
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[at[0]] = replaced(value[at[0]], at[1:], by)
    return copy


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 62), 1 << 62) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20) | st.sampled_from(["f" * 64, "0.txt", "../0.txt", "reports", "shuffle"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)  # fmt: skip


def require_one_sentence(handed: Handed, summary: object) -> None:
    said = "read"
    try:
        handed.read(summary)
    except HushcountError as error:
        said = str(error)
    assert said.isprintable()
    assert len(said) < 2000


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(data=st.data())
def test_whatever_was_signed_it_is_read_or_refused_in_one_sentence(handed: Handed, data: st.DataObject) -> None:
    genuine = handed.genuine
    place = data.draw(st.sampled_from(places(genuine)))
    kind = data.draw(st.sampled_from(["replace", "wrap", "remove"]))
    if kind == "remove" and place:
        *outer, last = place
        without = replaced(genuine, tuple(outer), lambda whole: without_part(whole, last))
    else:
        without = replaced(genuine, place, lambda part: [part] if kind == "wrap" else data.draw(JSON))
    require_one_sentence(handed, without)


def without_part(whole: Any, key: str | int) -> Any:
    if isinstance(whole, dict):
        return {name: part for name, part in whole.items() if name != key}
    return [part for index, part in enumerate(whole) if index != key]


FILE = {"name": "0.txt", "bytes": 7, "digest": "f" * 64}


def test_a_signed_list_of_files_is_held_to_its_form(subtests: pytest.Subtests, handed: Handed) -> None:
    for files, says in (
        ([], "files: "),
        ({"discovery": []}, "no reports"),
        ({"reports": {}}, "files.reports: "),
        ({"reports": [FILE, FILE]}, "names a file twice"),
        ({"reports": [{**FILE, "name": "../0.txt"}]}, "file name"),
        ({"reports": [{**FILE, "bytes": -1}]}, "must be at least 0"),
        ({"reports": [{"name": "0.txt", "bytes": 7}]}, "digest: "),
        ({"reports": ["0.txt"]}, "must be a table"),
        ({"reports": [FILE] * 5000}, "4096"),
        ({f"r{number}": [] for number in range(20)}, "at most 8"),
    ):
        with subtests.test(says=says), pytest.raises(HushcountError, match=says):
            handed.read({**handed.genuine, "files": files})


def test_what_is_genuine_is_read(handed: Handed) -> None:
    handed.read(handed.genuine)
    assert handed.genuine["files"].keys() == set(STREAMS)
    with suppress(HushcountError):
        handed.read([])
