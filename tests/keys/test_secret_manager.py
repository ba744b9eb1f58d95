"""Keys in Google Secret Manager, by reference: tested against a local fake of its documented requests."""

from __future__ import annotations

import base64
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hushcount.errors import HushcountError, UsageError
from keys.directories import KeyReference, active_key, campaign_key, create
from tests.support.fake_kms import TOKEN, FakeServices, fake_services
from tests.support.jobs import done, new_campaign, summary, write_lines
from tests.support.records import key_file

NAME = "projects/p-1/secrets/hushcount-analyzer/versions/3"
SOURCE = f"gcp-secret://{NAME}"


@pytest.fixture
def fake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeServices]:
    with fake_services(tmp_path_factory.mktemp("credentials")) as services:
        yield services


def test_a_key_in_the_secret_manager_opens_by_reference(
    subtests: pytest.Subtests, fake: FakeServices, tmp_path: Path
) -> None:
    public = create(tmp_path / "keys", days=1)
    fake.secrets[NAME] = key_file(tmp_path / "keys", "analyzer").read_bytes()
    # As text, and as an option of a path leaves it.
    for source in (SOURCE, Path(SOURCE)):
        with subtests.test(source=source):
            reference = campaign_key(source, "analyzer", public.analyzer)
            assert reference.read().id == public.analyzer[0].id
            assert fake.asked[-1] == f"/v1/{NAME}:access"
            secret = reference.read().secret_for_storage()
            for hidden in (secret, secret.hex().encode(), base64.b64encode(secret), TOKEN.encode()):
                assert hidden not in pickle.dumps(reference) + repr(reference).encode()


def test_bare_digits_and_signing_keys_may_be_there_too(fake: FakeServices, tmp_path: Path) -> None:
    public = create(tmp_path / "keys", days=1)
    reference = KeyReference(str(tmp_path / "keys"), "analyzer", public.analyzer[0].id)
    fake.secrets[NAME] = reference.read().secret_for_storage().hex().encode() + b"\n"
    assert campaign_key(SOURCE, "analyzer", public.analyzer).read().id == public.analyzer[0].id
    create(tmp_path / "shuffler", days=1, roles=("shuffler",))
    fake.secrets[NAME] = key_file(tmp_path / "shuffler", "shuffler").read_bytes()
    assert active_key(SOURCE, "shuffler").role == "shuffler"


def test_a_job_opens_with_it(fake: FakeServices, tmp_path: Path) -> None:
    done("keys", "new", "--out", tmp_path / "keys")
    words = write_lines(tmp_path / "words.txt", ["alpha"])
    campaign = new_campaign(tmp_path / "w.json", tmp_path / "keys", dictionary=words)
    values = write_lines(tmp_path / "values.txt", ["alpha"] * 60)
    done("job", "encode", "--campaign", campaign, "--values", values, "--out", tmp_path / "encoded")
    done("job", "shuffle", "--campaign", campaign, "--input", tmp_path / "encoded", "--out", tmp_path / "shuffled")
    fake.secrets[NAME] = key_file(tmp_path / "keys", "analyzer").read_bytes()
    results = tmp_path / "results"
    done("job", "analyze", "--campaign", campaign, "--input", tmp_path / "shuffled", "--keys", SOURCE, "--out", results)
    assert summary(results)["accepted"] == 60


def test_a_reference_that_is_none_is_refused_before_anything_is_asked(
    subtests: pytest.Subtests, fake: FakeServices, tmp_path: Path
) -> None:
    public = create(tmp_path / "keys", days=1)
    for source in (
        "gcp-secret://",
        "gcp-secret://projects/p/secrets/s",
        "gcp-secret://projects/p/secrets/s/versions/x",
    ):
        with subtests.test(source=source):
            with pytest.raises(UsageError, match="gcp-secret://projects/P/secrets/S/versions/V"):
                campaign_key(source, "analyzer", public.analyzer)
            assert fake.asked == []


def test_what_is_missing_or_is_another_is_one_sentence_that_tells_nothing(fake: FakeServices, tmp_path: Path) -> None:
    public = create(tmp_path / "keys", days=1)
    other = create(tmp_path / "other", days=1)
    with pytest.raises(HushcountError, match=r"Google Secret Manager at .* 404 NOT_FOUND"):
        campaign_key(SOURCE, "analyzer", public.analyzer)
    fake.secrets[NAME] = b"\xff\xfe no text"
    with pytest.raises(HushcountError, match="without text"):
        campaign_key(SOURCE, "analyzer", public.analyzer)
    held = key_file(tmp_path / "other", "analyzer").read_bytes()
    fake.secrets[NAME] = held
    with pytest.raises(UsageError, match="holds no key") as caught:
        campaign_key(SOURCE, "analyzer", public.analyzer)
    secret = KeyReference(str(tmp_path / "other"), "analyzer", other.analyzer[0].id).read().secret_for_storage()
    assert secret.hex() not in str(caught.value) + repr(caught.value.__dict__)


def test_a_damaged_answer_is_refused(subtests: pytest.Subtests, fake: FakeServices, tmp_path: Path) -> None:
    public = create(tmp_path / "keys", days=1)
    fake.secrets[NAME] = key_file(tmp_path / "keys", "analyzer").read_bytes()
    for change, says in (
        ({"dataCrc32c": "5"}, "does not match its CRC32C"),
        ({"data": ""}, "without data"),
        ({"data": 5}, "no valid answer"),
    ):
        with subtests.test(change=change):
            fake.changes = change
            with pytest.raises(HushcountError, match=says):
                campaign_key(SOURCE, "analyzer", public.analyzer)


def test_a_library_that_is_missing_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "google.cloud.secretmanager_v1", None)
    with pytest.raises(UsageError, match=r"Google Secret Manager .*pip install 'hushcount-server\[gcp\]'"):
        campaign_key(SOURCE, "analyzer", create(tmp_path / "keys", days=1).analyzer)
