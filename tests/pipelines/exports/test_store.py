"""The data set of a store: each result is in one file, with its own numbers; a killed run leaves nothing wrong."""

from __future__ import annotations

import csv
import json
import math
import shutil
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hushcount.campaigns.campaign import Campaign
from hushcount.collection.windows import window_start
from hushcount.errors import FormatError
from hushcount.results import FOLDER, VERSION, VERSION_KEY, read, schema
from pipelines.dashboard.page import page_of
from pipelines.deployment.campaigns import read_campaign
from pipelines.exports import store as store_module
from pipelines.exports.store import exported, keep_up, write
from pipelines.exports.table import Result
from pipelines.files import storage
from pipelines.log.log import Logs
from tests.pipelines.exports.conftest import HALF
from tests.support.collecting import DAY, collect, window_name
from tests.support.jobs import cli, done, estimates, files_of, refused, summary
from tests.support.site import FLOOR, Site, at, values

SAME = (
    "count", "standard_error", "collision_error", "low", "high", "low_all", "high_all", "detected", "detected_all",
)  # fmt: skip


def files(site: Site) -> dict[str, bytes]:
    root = site.store / FOLDER
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def rows(site: Site, campaign: str, day: int = 0) -> list[dict[str, object]]:
    return list(read(site.store / FOLDER, campaign, [window_name(day)]).to_pylist())


def test_each_result_is_one_file_and_has_its_own_numbers(made: Site) -> None:
    results = sorted((made.store / "results").glob("*/*/summary.json"))
    assert len(results) == len(files(made)) == 5
    table = read(made.store / FOLDER)
    assert table.schema.equals(schema(), check_metadata=True)
    for mark in results:
        said, campaign, batch = summary(mark.parent), mark.parts[-3], mark.parts[-2]
        window, _, file = batch.partition("-")
        here = read(made.store / FOLDER, campaign, [window]).to_pylist()
        here = [row for row in here if f"{row['epoch']:06d}-{row['fingerprint']}" == file]
        known = estimates(mark.parent)
        assert {row["item"] for row in here if row["source"] == "estimate" and not row["other"]} == known.keys()
        for row in here:
            assert (row["campaign"], row["window"], row["reports"]) == (campaign, window, said["accepted"])
            assert (row["window_start"], row["window_end"]) == (window_start(window), window_start(window) + DAY)
            assert row["share"] == row["count"] / row["reports"]
            assert row["variance"] == row["standard_error"] ** 2 + row["collision_error"] ** 2
            if row["source"] == "estimate" and not row["other"]:
                assert [row[name] for name in SAME] == [known[row["item"]][name] for name in SAME]
        others = [row for row in here if row["other"]]
        assert len(others) == ("other" in said)
        for row in others:
            assert {name: row[name] for name in said["other"]} == said["other"]
            assert (row["item"], row["low_all"], row["detected_all"]) == (None, None, None)
            assert here[-1] == row
        counts = [row["count"] for row in here if not row["other"]]
        assert counts == sorted(counts, reverse=True)


def test_what_another_run_is_about_to_publish_is_left_to_it(made: Site, tmp_path: Path) -> None:
    site = made.copied(tmp_path / "site")
    mark = site.store / "results" / "words" / site.batch(0) / "summary.json"
    held = files(site)
    (name,) = [name for name in held if "words" in name and window_name(0) in name and "000001-" in name]
    (site.store / FOLDER / name).unlink()
    published = mark.read_bytes()
    mark.unlink()
    epochs = read_campaign(site.deployment.campaigns / "words")
    fold = Logs(site.deployment).read("words")
    assert keep_up(fold, site.deployment, epochs, (), exported(site.deployment), lambda _: None) == []
    assert files(site).keys() == held.keys() - {name}
    mark.write_bytes(published)
    assert keep_up(fold, site.deployment, epochs, fold.analyzed, exported(site.deployment), lambda _: None) == []
    assert files(site) == held


def test_every_accepted_report_is_in_one_file_also_one_that_came_late(made: Site) -> None:
    table = read(made.store / FOLDER, "words").group_by(["window", "epoch", "reports"]).aggregate([])
    counted = {(row["window"], row["epoch"]): row["reports"] for row in table.to_pylist()}
    assert counted == {(window_name(0), 1): HALF + 60, (window_name(1), 1): 70, (window_name(1), 2): 2 * HALF}


def test_discovered_values_have_rows_of_their_own_or_a_combined_count(made: Site) -> None:
    settings = {row["item"]: row for row in rows(made, "settings")}
    assert settings["=1+1"]["source"] == "estimate"
    new = settings["new"]
    assert (new["source"], new["collision_error"], new["detected_all"]) == ("discovery", 0.0, True)
    # Beyond 60 the noise has a probability below 1e-9.
    assert abs(new["count"] - HALF) < 60
    assert new["low_all"] == new["low"] < new["count"] < new["high"]
    assert {(row["repeated"], row["pool"]) for row in settings.values()} == {(True, True)}
    (open_,) = rows(made, "open")
    assert open_["source"] == "estimate"
    assert open_["combined_error"] < 3.0 < math.sqrt(open_["variance"])
    assert abs(open_["combined"] - HALF) < 60
    assert (open_["mechanism"], open_["epsilon"], open_["repeated"], open_["pool"]) == ("gcms", 4.0, False, True)


def test_a_missing_file_is_made_again_and_nothing_else_is_written(made: Site, tmp_path: Path) -> None:
    site = made.copied(tmp_path / "site")
    before = files(site)
    root = site.store / FOLDER
    gone = sorted(before)[-1]
    # As a run that was killed while it wrote leaves it.
    (root / gone).rename(root / gone.replace("/0", "/.0").replace(".parquet", ".parquet.0f.tmp"))
    others = {name: (root / name).stat().st_mtime_ns for name in before if name != gone}
    assert site.run(2.2).problems == []
    assert files(site) == before
    assert {name: (root / name).stat().st_mtime_ns for name in others} == others


def test_a_killed_run_is_repaired_at_every_file(made: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = made.copied(tmp_path / "site")
    whole = files(site)
    shutil.rmtree(site.store / FOLDER)
    made_so_far = 0

    def killed(result: object, root: str) -> str | None:
        nonlocal made_so_far
        if made_so_far:
            raise KeyboardInterrupt
        made_so_far += 1
        return write(result, root)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(store_module, "write", killed)
        for number in range(len(whole)):
            made_so_far = 0
            assert len(files(site)) == number
            if number < len(whole) - 1:
                with pytest.raises(KeyboardInterrupt):
                    site.run(2.2)
            else:
                site.run(2.2)
    assert files(site) == whole


def test_two_runs_write_one_file_at_once_and_neither_fails(
    made: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = made.store / "results" / "words" / made.batch(0)
    campaign = Campaign.read(made.campaign.with_name("epoch-000001.json"))
    result = Result(str(directory), campaign, window_name(0), at(1), made.batch(0))
    moves: list[str] = []

    def overtaken(source: str, target: str) -> None:
        moves.append(target)
        if len(moves) == 1:
            # The other run writes the file, and takes this one's temporary file for that of a killed run.
            write(result, str(tmp_path))
        move(source, target)

    move = storage.rename
    with monkeypatch.context() as patch:
        patch.setattr(storage, "rename", overtaken)
        path = write(result, str(tmp_path))
    assert [path] * 2 == moves
    assert [str(one) for one in tmp_path.rglob("*") if one.is_file()] == [path]


def test_files_of_an_older_version_are_made_again_and_the_oldest_last(
    made: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = made.copied(tmp_path / "site")
    written: list[str] = []

    def noted(path: str, parts: object) -> None:
        if path.endswith(".parquet"):
            written.append(Path(path).relative_to(site.store / FOLDER / "campaign=words").as_posix())
        return whole(path, parts)  # type: ignore[arg-type]

    whole = storage.write_whole
    for path in (site.store / FOLDER).rglob("*.parquet"):
        table = pq.ParquetFile(path).read()
        if "words" not in str(path):
            continue
        pq.write_table(table.drop_columns(["combined"]).replace_schema_metadata({VERSION_KEY: b"0"}), path)
    monkeypatch.setattr(storage, "write_whole", noted)
    assert site.run(2.2).problems == []
    assert written == sorted(written, reverse=True)
    assert len(written) == 3
    assert files(site) == files(made)
    # A result that cannot be read keeps the oldest from standing for all.
    for path in (site.store / FOLDER / "campaign=words").rglob("*.parquet"):
        path.unlink()
    broken = files_of(site.store / "results" / "words" / site.batch(1)) / "tally.npz"
    kept = broken.read_bytes()
    broken.write_bytes(b"damaged")
    (problem,) = site.run(2.2).problems
    assert f"words/{site.batch(1)}: its estimates were not written" in problem
    assert len([name for name in files(site) if "words" in name]) == 1
    broken.write_bytes(kept)
    assert site.run(2.3).problems == []
    assert files(site) == files(made)


@pytest.mark.long
def test_only_where_the_analyzer_runs_and_where_paths_say(tmp_path: Path) -> None:
    site = Site(tmp_path, tail='[paths]\nestimates = "elsewhere"\n')
    collect(site.store, site.campaign, values(100), day=0)
    text = site.config.read_text()
    site.config.write_text(f'parties = ["shuffler"]\n{text}')
    site.run(1.1)
    assert not (tmp_path / "elsewhere").exists()
    site.config.write_text(text)
    site.run(1.2)
    assert read(tmp_path / "elsewhere")["reports"].to_pylist() == [100] * 4
    assert not (site.store / FOLDER).exists()
    assert (next((tmp_path / "elsewhere").rglob("*.parquet")).stat().st_mode & 0o077) == 0


@pytest.mark.long
def test_a_result_without_a_tally_has_no_file(made: Site, tmp_path: Path) -> None:
    site = made.copied(tmp_path / "site")
    for path in (site.store / "results" / "words").rglob("tally.npz"):
        path.unlink()
    said = done("export", "--config", site.config, "--campaign", "words", "--json").json
    assert said == {"written": [], "problems": []}
    fresh = Site(tmp_path / "fresh") if (tmp_path / "fresh").mkdir() is None else site
    collect(fresh.store, fresh.campaign, values(FLOOR - 1), day=0)
    assert fresh.run(1.1).problems == []
    assert not (fresh.store / FOLDER).exists()


def test_the_command_makes_all_again(made: Site, tmp_path: Path) -> None:
    site = made.copied(tmp_path / "site")
    before = files(site)
    for path in (site.store / FOLDER).rglob("*.parquet"):
        path.write_bytes(b"damaged")
    # Any may be damaged but the oldest, whose version a run reads.
    said = done("export", "--config", site.config, "--json")
    assert len(said.json["written"]) == len(before)
    assert files(site) == before
    refused("export", "--config", site.config, "--campaign", "no", says=["campaign is 'no'", "words"])
    refused("export", says=["--config FILE"])
    (site.store / "results" / "words" / site.batch(0) / "summary.json").write_text("{")
    failed = cli("export", "--config", site.config, "--campaign", "words")
    assert failed.status == 1
    assert f"words/{site.batch(0)}: " in failed.err


def test_results_made_by_hand_are_exported_too(made: Site, tmp_path: Path) -> None:
    result = made.store / "results" / "words" / made.batch(0)
    command = ["export", "--campaign", made.campaign.with_name("epoch-000001.json"), "--out", tmp_path / "own"]
    done(*command, "--result", result, "--length", "1d")
    assert read(tmp_path / "own").equals(read(made.store / FOLDER, "words", [window_name(0)]))
    done(*command, "--result", result, "--window", "20200101T000000Z")
    early = read(tmp_path / "own", windows=["20200101T000000Z"])
    assert early["window_end"].null_count == early.num_rows == 4
    refused(*command, "--result", result, "--window", "monday", says=["window is 'monday'"])
    refused(*command, "--result", result, "--result", result, says=["another"])
    refused(*command, "--result", made.store / "shuffled" / "words" / made.batch(0), says=["/shuffled/", "no result"])
    refused(*command, "--result", made.store / "results" / "settings", says=["settings"])
    refused(*command, "--result", result, "--config", made.config, says=["--config"])
    assert json.loads((result / "summary.json").read_text())["window"] == window_name(0)


def test_what_is_no_estimate_of_ours_is_refused(made: Site, tmp_path: Path) -> None:
    site = made.copied(tmp_path / "site")
    result = site.store / "results" / "words" / site.batch(0)
    path = files_of(result) / "estimates.parquet"
    pq.write_table(pa.table({"item": ["alpha"]}), path)
    failed = cli("export", "--config", site.config, "--campaign", "words")
    assert str(path) in failed.err
    assert "hushcount analyze" in failed.err
    shutil.copy(made.root / path.relative_to(site.root), path)
    (result / "summary.json").write_text(json.dumps({**summary(result), "confidence": "high"}))
    says = ["confidence 'high'"]
    refused("export", "--config", site.config, "--campaign", "words", status=1, says=says)
    assert VERSION == 1


def test_estimates_with_cells_that_cannot_be_are_refused(made: Site, tmp_path: Path, subtests: pytest.Subtests) -> None:
    whole = made.store / "results" / "words" / made.batch(0)
    result = Path(shutil.copytree(whole, tmp_path / "result"))
    path = files_of(result) / "estimates.parquet"
    table = pq.read_table(path)
    place = table.schema.get_field_index("count")
    columns = {
        "text": pa.array(["x"] * len(table)),
        "null": pa.nulls(len(table), pa.float64()),
        "nan": pa.array([math.nan] * len(table)),
    }
    changed = {name: table.set_column(place, "count", column) for name, column in columns.items()}
    for name, wrong in {**changed, "twice": pa.concat_tables([table, table])}.items():
        with subtests.test(name=name):
            pq.write_table(wrong, path)
            command = ("export", "--campaign", made.campaign, "--out", tmp_path / "own")
            refused(*command, "--result", result, says=[str(path), "hushcount analyze"])


def test_counts_of_discovery_that_cannot_be_are_refused_wherever_they_are_read(made: Site, tmp_path: Path) -> None:
    site = made.copied(tmp_path / "site")
    (path,) = (site.store / "results" / "settings").glob("*/*/found.csv")
    with path.open(newline="") as stream:
        lines = list(csv.DictReader(stream))
    for count in ("-1e300", "1e300", "1"):
        with path.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, lines[0])
            writer.writeheader()
            writer.writerows({**line, "count": count} for line in lines)
        says = [str(path), "count that no bin"]
        refused("export", "--config", site.config, "--campaign", "settings", status=1, says=says)
        refused("ask", "new", "--config", site.config, "--campaign", "settings", says=says)
        assert says[1] in page_of(site.deployment, at(2.2), 100)


def test_a_flipped_bit_is_told_and_never_another_number(made: Site, tmp_path: Path) -> None:
    root = Path(shutil.copytree(made.store / FOLDER / "campaign=settings", tmp_path / FOLDER / "campaign=settings"))
    (path,) = root.rglob("*.parquet")
    whole, before = path.read_bytes(), read(tmp_path / FOLDER)
    drawn = Random(3)
    told = 0
    for _ in range(300):
        changed = bytearray(whole)
        changed[drawn.randrange(len(whole))] ^= 1 << drawn.randrange(8)
        path.write_bytes(changed)
        try:
            after = read(tmp_path / FOLDER)
        except FormatError:
            told += 1
        else:
            # As when the name of the digest is another one.
            assert after.equals(before)
    assert told > 290
