"""Publishing an epoch: once, after those that are there, by one process at a time, and whole."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hushcount.campaigns.campaign import Campaign
from hushcount.collection.epochs import CollectionFile, read_collection
from hushcount.errors import UsageError
from pipelines.deployment.publish import publish, publishing
from tests.support.collecting import DAY, START
from tests.support.jobs import done, new_campaign, refused
from tests.support.site import Site, at


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def made(site: Site, epoch: int, where: str = "elsewhere", name: str = "words.json") -> Path:
    """Return a campaign file that is not published yet."""
    source = site.root / where
    source.mkdir()
    after = ["--after", folder(site) / collection(site).epochs[0].file] if name.startswith("words.") else []
    return new_campaign(source / name, site.keys, "--epoch", epoch, *after, dictionary=site.words)


def folder(site: Site) -> Path:
    return site.root / "campaigns" / "words"


def collection(site: Site) -> CollectionFile:
    return read_collection(folder(site) / "collection.json")


def test_publishing_twice_is_publishing_once_and_an_earlier_epoch_is_refused(site: Site) -> None:
    third = made(site, 3)
    published = publish(site.deployment, third, now=at(0.5))
    assert published.begins == at(1)
    before = (folder(site) / "collection.json").read_bytes()
    assert publish(site.deployment, third, now=at(0.7)) == published
    assert (folder(site) / "collection.json").read_bytes() == before
    assert Campaign.read(folder(site) / published.file).fingerprint == Campaign.read(third).fingerprint
    second = made(site, 2, "b")
    refused("campaign", "publish", "--config", site.config, "--campaign", second, says=["epoch 2", "epoch 3"])


def test_the_first_epoch_of_a_campaign_is_published_into_a_new_folder(site: Site) -> None:
    other = made(site, 1, name="other.json")
    said = done("campaign", "publish", "--config", site.config, "--campaign", other, "--json").json
    assert said["epoch"] == 1
    assert (site.root / "campaigns" / "other" / said["file"]).exists()


def test_a_signature_is_added_or_renewed_by_publishing_again(site: Site) -> None:
    second = made(site, 2)
    publish_it = ("campaign", "publish", "--config", site.config, "--campaign", second)
    assert done(*publish_it).err
    there, path = folder(site) / "epoch-000002.json.sig", folder(site) / "collection.json"
    assert not there.exists()
    for name in ("operator", "another"):
        done("keys", "new", "--role", "operator", "--out", site.root / name)
        Path(f"{second}.sig").unlink(missing_ok=True)
        done("campaign", "sign", "--campaign", second, "--keys", site.root / name)
        before, stamp = path.read_bytes(), path.stat().st_ino
        assert done(*publish_it).err == ""
        assert there.read_bytes() == Path(f"{second}.sig").read_bytes()
        # Replaced by the same content, so that collectors read the campaign again.
        assert path.read_bytes() == before
        assert path.stat().st_ino != stamp


def test_when_an_epoch_begins_is_a_time_with_its_zone(site: Site) -> None:
    command = ["campaign", "publish", "--config", site.config, "--campaign", made(site, 2)]
    for given in ("2099-01-01", "2099-01-01T00:00:00", "tomorrow"):
        refused(*command, "--begins", given, says=[f"begins is {given!r}", "2026-12-01T00:00:00Z"])
    assert len(collection(site).epochs) == 1
    done(*command, "--begins", "2099-01-01T01:00:00+01:00")
    first, second = collection(site).epochs
    assert second.begins.isoformat() == "2099-01-01T00:00:00+00:00"
    assert first.ends == second.begins


def test_an_epoch_that_was_given_an_end_is_not_cut_short(site: Site) -> None:
    path = folder(site) / "collection.json"
    data = json.loads(path.read_text())
    data["epochs"][0]["ends"] = at(5).isoformat()
    path.write_text(json.dumps(data))
    second = made(site, 2)
    with pytest.raises(UsageError, match=f"ends {at(5).isoformat()}".replace("+", r"\+")):
        publish(site.deployment, second, at(3), at(0.5))
    publish(site.deployment, second, at(6), at(0.5))
    assert [part.ends for part in collection(site).epochs] == [at(5), None]


def test_what_a_killed_try_left_is_replaced_and_its_signature_goes(site: Site) -> None:
    left = {
        "epoch-000002.json": "another",
        "epoch-000002.json.sig": "of another",
        "epoch-000002.dictionary.txt.gz": "x\n",
    }
    for name, text in left.items():
        (folder(site) / name).write_text(text)
    second = made(site, 2)
    publish(site.deployment, second, now=at(0.5))
    assert Campaign.read(folder(site) / "epoch-000002.json").fingerprint == Campaign.read(second).fingerprint
    dictionary = Campaign.read(folder(site) / "epoch-000002.json").read_dictionary()
    assert dictionary is not None
    assert dictionary.items == ("alpha", "beta", "gamma")
    assert not (folder(site) / "epoch-000002.json.sig").exists()


@pytest.mark.parametrize("taken", ["epoch-000002.json", "epoch-000002.dictionary.txt.gz"])
def test_a_file_that_is_collected_under_is_never_replaced(site: Site, taken: str) -> None:
    path = folder(site) / "collection.json"
    data = json.loads(path.read_text())
    campaign = json.loads(site.campaign.read_text())
    if taken.endswith(".json"):
        data["epochs"][0]["file"] = site.campaign.rename(folder(site) / taken).name
    else:
        # The same items, in a file of the same name, but of other bytes.
        (folder(site) / taken).write_bytes(site.words.read_bytes().replace(b"\n", b"\r\n"))
        campaign["dictionary"]["path"] = taken
        site.campaign.write_text(json.dumps(campaign))
    path.write_text(json.dumps(data))
    kept = {one: one.read_bytes() for one in (path, folder(site) / taken)}
    with pytest.raises(UsageError, match=f"{taken} "):
        publish(site.deployment, made(site, 2), now=at(0.5))
    assert {one: one.read_bytes() for one in kept} == kept


def test_a_campaign_file_that_lies_in_its_folder_already_is_published_with_its_signature(site: Site) -> None:
    done("keys", "new", "--role", "operator", "--out", site.root / "operator")
    second = new_campaign(folder(site) / "words.json", site.keys, "--after", site.campaign, dictionary=site.words)
    second = second.rename(folder(site) / "epoch-000002.json")
    done("campaign", "sign", "--campaign", second, "--keys", site.root / "operator")
    publish(site.deployment, second, now=at(0.5))
    done("campaign", "verify", "--campaign", second, "--keys", site.root / "operator")
    assert Campaign.read(second).dictionary.path == "epoch-000002.dictionary.txt.gz"  # type: ignore[union-attr]


def test_one_process_publishes_at_a_time_and_none_is_lost(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    second, third = made(site, 2, "b"), made(site, 3, "c")
    waiting = threading.Thread(target=publish, args=(site.deployment, third, at(2), at(0.5)))
    real, asked = fcntl.flock, threading.Event()

    def flock(file: int, way: int) -> None:
        asked.set()
        real(file, way)

    with publishing(folder(site)):
        monkeypatch.setattr(fcntl, "flock", flock)
        waiting.start()
        assert asked.wait(60.0)
        assert [part.epoch for part in collection(site).epochs] == [1]
    waiting.join()
    assert [part.epoch for part in collection(site).epochs] == [1, 3]
    with pytest.raises(UsageError, match="epoch 3"):
        publish(site.deployment, second, at(3), at(0.5))


@pytest.mark.long
def test_who_may_write_the_folder_publishes_after_another_user_did(site: Site) -> None:
    with publishing(folder(site)):
        pass
    lock = folder(site) / ".publish.lock"
    # As what another user made under the usual umask: it can be read, and not written.
    lock.chmod(0o444)
    folder(site).chmod(0o777)
    script = (
        "import fcntl, os, sys\nfrom pathlib import Path\nfrom pipelines.deployment.publish import publishing\n"
        "os.chdir(sys.argv[1])\n"
        "if os.getuid() == 0:\n    os.setuid(65534)\n"
        "assert not os.access('.publish.lock', os.W_OK)\n"
        "with publishing(Path('.')):\n"
        "    other = os.open('.publish.lock', os.O_RDONLY)\n"
        "    try:\n        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
        "    except BlockingIOError:\n        print('alone')\n"
    )
    ran = subprocess.run(  # noqa: S603  # our own script
        [sys.executable, "-c", script, folder(site)], capture_output=True, text=True, check=False
    )
    assert ran.stdout == "alone\n", ran.stderr


@pytest.mark.long
def test_the_lock_of_a_killed_process_does_not_outlive_it(site: Site) -> None:
    script = (
        "import sys, time\nfrom pathlib import Path\nfrom pipelines.deployment.publish import publishing\n"
        "with publishing(Path(sys.argv[1])):\n    print('held', flush=True)\n    time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script, folder(site)], stdout=subprocess.PIPE) as holder:  # noqa: S603  # our own script
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        os.kill(holder.pid, signal.SIGKILL)
    assert publish(site.deployment, made(site, 2), now=at(0.5)).begins == START + DAY


@pytest.mark.parametrize("after", ["nothing", "another file"])
def test_an_epoch_that_does_not_continue_what_is_published_is_refused(site: Site, after: str) -> None:
    """Clients that saw the first epoch would refuse it, and so would every collector."""
    (site.root / "a").mkdir()
    other = new_campaign(site.root / "a" / "words.json", site.keys, dictionary=site.words, epsilon=1.0)
    given = ["--after", other] if after == "another file" else []
    second = new_campaign(
        (site.root / "a" / "second.json"), site.keys, "--epoch", 2, *given, "--id", "words", dictionary=site.words
    )
    before = sorted(folder(site).iterdir())
    head = Campaign.read(site.campaign).head.hex()
    refused(
        "campaign", "publish", "--config", site.config, "--campaign", second,
        says=["previous of epoch 2 of campaign words", head, "hushcount campaign new --after"],
    )  # fmt: skip
    assert [path for path in sorted(folder(site).iterdir()) if path.name != ".publish.lock"] == before


def test_the_first_epoch_that_is_published_follows_none(site: Site) -> None:
    second = made(site, 2)
    (site.root / "campaigns").rename(site.root / "gone")
    refused("campaign", "publish", "--config", site.config, "--campaign", second, says=["previous", "absent"])
