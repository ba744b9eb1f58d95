"""Input and output in an object store: every byte goes through Beam's FileSystems, and summary.json comes last."""

from __future__ import annotations

import io
import json
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from rich.console import Console

from hushcount.campaigns.campaign import Campaign
from hushcount.many_clients import ManyClients
from pipelines.engine.runner import Engine
from pipelines.files.storage_errors import StorageError
from pipelines.jobs.job import run
from pipelines.jobs.shuffle import plan_shuffle
from pipelines.outputs.received_summary import file_of, folder_of
from pipelines.outputs.staging import RUN_FOLDER
from tests.pipelines.conftest import World
from tests.support.jobs import Chain, done, each_a_client, new_campaign, refused, write_lines
from tests.support.records import envelopes, file_bytes, read_file, write_envelopes
from tests.support.stub_store import StubStore

pytestmark = [pytest.mark.beam, pytest.mark.usefixtures("store")]

LINES = ["alpha"] * 60 + ["unlisted"] * 60


@pytest.fixture(scope="session")
def chain(world: World) -> Chain:
    path = new_campaign(world.root / "remote.json", world.keys, dictionary=world.dictionary, discovery=2.0)
    chain = Chain(path, world.keys)
    write_lines(world.root / "remote.txt", LINES)
    return chain


def encode(chain: Chain, out: str, *options: object) -> None:
    values = chain.campaign_path.with_name("remote.txt")
    named = each_a_client(values, values.with_name("named.txt"))
    done("job", "encode", "--campaign", chain.campaign_path, "--values", named, "--clients", "--out", out, *options)


@pytest.fixture(scope="module")
def encoded(chain: Chain, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The lines, encoded on this machine."""
    out = tmp_path_factory.mktemp("remote") / "encoded"
    encode(chain, str(out))
    return out


def shuffle_arguments(chain: Chain, source: object, out: str) -> tuple[object, ...]:
    return ("job", "shuffle", "--campaign", chain.campaign_path, "--input", source, "--out", out)


def names(store: type[StubStore], prefix: str) -> set[str]:
    """Return the objects below a prefix, without the folder of the run that an output has."""
    here = (path.removeprefix(prefix) for path in store.objects if path.startswith(prefix))
    return {re.sub(rf"^{RUN_FOLDER}/", "", name) for name in here}


@pytest.mark.long
def test_every_job_with_input_and_output_in_the_store(
    chain: Chain, store: type[StubStore], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store has no directories: shuffle must not ask whether its input directory exists."""
    monkeypatch.chdir(tmp_path)
    base = "stub://bucket/run"
    encode(chain, f"{base}/encoded")
    done(*shuffle_arguments(chain, f"{base}/encoded", f"{base}/shuffled"))
    assert names(store, f"{base}/shuffled/") == {
        "summary.json",
        "reports/part-00000-of-00001.blocks",
        "discovery/part-00000-of-00001.blocks",
    }
    common = ("--campaign", chain.campaign_path, "--keys", chain.keys, "--input", f"{base}/shuffled")
    done("job", "analyze", *common, "--out", f"{base}/results")
    # The parts of the tally do not stay behind where no directory can be removed.
    assert not [path for path in store.objects if "/." in path.removeprefix(base)]
    assert names(store, f"{base}/results/") == {
        "summary.json", "estimates.csv", "estimates.parquet", "tally.npz", "report.html"
    }  # fmt: skip
    done("job", "discover", *common, "--out", f"{base}/found")
    assert names(store, f"{base}/found/") == {"summary.json", "found.csv"}
    assert store.objects[file_of(f"{base}/found/found.csv")] == b'item\n"unlisted"\n'
    asked = ("--tally", f"{base}/results/tally.npz", "--items", chain.campaign_path.with_name("dictionary.txt"))
    done("job", "estimate", "--campaign", chain.campaign_path, *asked, "--out", f"{base}/again")
    # The first begins with the largest count, the second has the order of the dictionary.
    first, again = (
        pq.read_table(io.BytesIO(store.objects[file_of(f"{base}/{folder}/estimates.parquet")])).sort_by("item")
        for folder in ("results", "again")
    )
    assert again.equals(first)
    first_lines, lines = (
        store.objects[file_of(f"{base}/{folder}/estimates.csv")].splitlines() for folder in ("results", "again")
    )
    assert sorted(lines) == sorted(first_lines)
    for job in ("encoded", "shuffled", "results", "found", "again"):
        written = [path for path in store.named if path.startswith(f"{base}/{job}/") and not path.endswith(".tmp")]
        assert written[-1] == f"{base}/{job}/summary.json"
        assert written.count(f"{base}/{job}/summary.json") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_below_the_minimum_batch_nothing_is_written_to_a_store(
    chain: Chain, store: type[StubStore], tmp_path: Path
) -> None:
    """Not the dead letters either, although they are written in place."""
    values = write_lines(tmp_path / "few.txt", ["alpha"] * 49)
    done("job", "encode", "--campaign", chain.campaign_path, "--values", values, "--out", tmp_path / "encoded")
    (file,) = (tmp_path / "encoded" / "reports").glob("*.blocks")
    header, rows = read_file(file)
    foreign = file_bytes(header.kind, rows, bytes(32), "foreign")
    file.with_name("foreign.blocks").write_bytes(foreign)
    refused(*shuffle_arguments(chain, tmp_path / "encoded", "stub://b/shuffled"), status=3, says=["49"])
    assert store.objects == {}


@pytest.mark.parametrize("full", ["", "/reports/"])
@pytest.mark.long(but=("/reports/",))
def test_what_is_put_aside_on_the_way_to_a_store_is_local_and_goes(
    chain: Chain, store: type[StubStore], encoded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: str
) -> None:
    """Also when the store takes no object: then there is nothing in it either."""
    seen: list[list[Path]] = []

    class Watching(Engine):
        @contextmanager
        def spill(self, directory: str) -> Iterator[str | None]:
            with super().spill(directory) as made:
                try:
                    yield made
                finally:
                    seen.append(list((tmp_path / "temporary").rglob("*")))

    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    store.full = full
    engine = Watching()
    job = plan_shuffle(chain.campaign_path, str(encoded), "stub://b/out")
    if full:
        with pytest.raises(StorageError, match="No space left"):
            run(job, engine)
        assert store.objects == {}
    else:
        run(job, engine)
        assert not [name for name in store.named if "spill" in name]
    assert len(seen) == 1
    assert len(seen[0]) > 2
    assert not list((tmp_path / "temporary").iterdir())


def test_the_times_at_which_shards_are_written_say_nothing_of_what_came_first(
    chain: Chain, store: type[StubStore], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are written in the order of their names. Fails if one of 50 is empty, with probability 2e-7.

    Power: in the order in which an engine first met them, the shards of the first file's three reports come before all
    others, and these are the first three by name once in 19,600 times.
    """
    monkeypatch.setattr("pipelines.jobs.shuffle._SHARD_RECORDS", 20)
    sealed = ManyClients(chain.campaign).reports(["alpha"] * 1000)
    rows = envelopes(chain.campaign, sealed)
    for name, part in (("first", rows[:3]), ("second", rows[3:])):
        write_envelopes(tmp_path / "in", chain.campaign, "reports", part, name)
    found = ManyClients(chain.campaign).discovery_reports(["unlisted"] * 60)
    write_envelopes(tmp_path / "in", chain.campaign, "discovery", envelopes(chain.campaign, found))
    run(plan_shuffle(chain.campaign_path, str(tmp_path / "in"), "stub://b/out"))
    written = [name for name in store.named if name.startswith(f"{folder_of('stub://b/out')}/reports/part-")]
    assert len(written) == 50
    assert written == sorted(written)


@pytest.mark.parametrize("where", ["local", "store"])
@pytest.mark.long(but=("local",))
def test_progress_on_a_terminal_leaves_nothing_behind(
    chain: Chain, store: type[StubStore], encoded: Path, tmp_path: Path, where: str
) -> None:
    out = str(tmp_path / "out") if where == "local" else "stub://b/out"
    with (tmp_path / "terminal").open("w", encoding="utf-8") as stream:
        console = Console(file=stream, force_terminal=True)
        run(plan_shuffle(chain.campaign_path, str(encoded), out), console=console)
    if where == "local":
        assert "shuffle: 240 records" in (tmp_path / "terminal").read_text(encoding="utf-8")
    assert sorted(path.name for path in tmp_path.iterdir()) == [*(["out"] * (where == "local")), "terminal"]
    assert not list(tmp_path.rglob(".*"))
    summary = store.objects.get(f"{out}/summary.json") or (tmp_path / "out" / "summary.json").read_bytes()
    assert json.loads(summary)["accepted"] == 240


def test_of_a_release_into_a_store_nobody_sees_a_draw_but_the_one_that_is_handed_out(
    chain: Chain, store: type[StubStore], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever reads the store all the time, retries included: each draw that is thrown away would be a release.

    Two draws of these values are equal with a probability below 1e-9: 40 bins, each kept in about half of the draws.
    """
    even = Campaign.read(chain.campaign_path).require_keep_rule().count_for(0.5)
    values = [f"unlisted {number}" for number in range(40) for _ in range(even)]
    named = each_a_client(write_lines(tmp_path / "borderline.txt", values), tmp_path / "named.txt")
    done(
        "job",
        "encode",
        "--campaign",
        chain.campaign_path,
        "--values",
        named,
        "--clients",
        "--out",
        tmp_path / "encoded",
    )
    done(*shuffle_arguments(chain, tmp_path / "encoded", str(tmp_path / "shuffled")))
    seen: list[bytes] = []
    put = store.put

    def watched(_store: type[StubStore], path: str, content: bytes) -> None:
        if "/bins/" in path:
            seen.append(content)
        put(path, content)

    monkeypatch.setattr(store, "put", classmethod(watched))
    common = ("--campaign", chain.campaign_path, "--keys", chain.keys, "--ledger", tmp_path / "ledger.db")
    for _ in range(3):
        done(
            "job", "discover", "--party", "aux-server", *common, "--input", tmp_path / "shuffled",
            "--out", "stub://b/released", "--overwrite",
        )  # fmt: skip
    assert len(set(seen)) == 1
    assert names(store, "stub://b/released/") == {"summary.json", "bins/released.blocks"}
