"""The demo on a small cut of its own data: what it prints is true and the page stands alone."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from scipy.stats import binom
from typer.testing import CliRunner

from examples import draw_addresses
from hushcount.campaigns.campaign import Campaign
from pipelines.cli import app
from pipelines.commands import demo
from pipelines.commands.demo import scenes
from pipelines.jobs.found import read_found_items

DATA = Path(__file__).parents[1] / "examples" / "data"
PEOPLE, WORDS, FEW, VISITS = 1_000, 9_000, 3_000, 9_000
"""Of so many words a value outside the 500 listed ones is found with probability 1 - 3e-8; of so many visits an address
with probability 1 - 1e-9: the most frequent one has 300."""
SCENES = ("adult", "words", "addresses")
# |z| beyond this happens by chance with probability 1e-9 for one item, so below 1e-6 for all items of the cut.
Z_BOUND = 6.2


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return cut(tmp_path_factory.mktemp("data"), WORDS)


def cut(directory: Path, words: int, listed: int = 500, visits: int = VISITS) -> Path:
    """Cut the demo's data to so many words, so many of them listed, and so many visits; return the directory."""
    directory.mkdir(exist_ok=True)
    lengths = {"education.txt.gz": PEOPLE, "words.txt.gz": words, "words_dictionary.txt.gz": listed}
    for name, lines in (*lengths.items(), ("addresses.txt.gz", visits)):
        with gzip.open(DATA / name, "rt", encoding="utf-8") as stream:
            kept = [next(stream) for _ in range(lines)]
        with gzip.open(directory / name, "wt", encoding="utf-8") as stream:
            stream.writelines(kept)
    (directory / "education_dictionary.txt").write_bytes((DATA / "education_dictionary.txt").read_bytes())
    return directory


@pytest.fixture(scope="module")
def shown(small: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    out = tmp_path_factory.mktemp("demo") / "out"
    result = CliRunner().invoke(app, ["demo", "--out", str(out), "--data", str(small)], env={"COLUMNS": "300"})
    assert result.exit_code == 0, result.output
    return out, result.output


def test_it_tells_what_each_party_saw_and_could_not_see(shown: tuple[Path, str]) -> None:
    _, output = shown
    for party in ("Clients", "Shuffler", "Auxiliary server", "Analyzer"):
        assert party in output
    assert f"{PEOPLE:,} reports" in output
    assert f"{2 * WORDS:,} reports: {WORDS:,} in the stream reports and {WORDS:,} in the stream discovery" in output


def test_estimates_are_within_their_errors(shown: tuple[Path, str]) -> None:
    out, _ = shown
    summary = json.loads((out / "summary.json").read_text())
    for scene, items in (("adult", 16), ("words", 500)):
        assert summary[scene]["items"] == items
        assert summary[scene]["largest_z"] < Z_BOUND
    discovery = summary["words"]["discovery"]
    assert abs(discovery["found"] - discovery["expected"]) < Z_BOUND * discovery["expected_deviation"] + 1
    assert discovery["found"] > 0
    # The intervals hold 95 % of words far above the threshold; near it more of them miss, less than a quarter of all.
    missing = discovery["found"] - discovery["intervals_holding"]
    assert 0 <= missing <= binom.isf(1e-6, discovery["found"], 0.25)
    # One word's noise is beyond 50 with a probability below 1e-8.
    assert discovery["error"] < 50
    assert discovery["predicted_error"] == pytest.approx(2.98, abs=5e-3)


def test_nobody_listed_the_addresses_and_the_sketch_counts_those_that_were_found(shown: tuple[Path, str]) -> None:
    out, output = shown
    campaign = json.loads((out / "addresses" / "campaign.json").read_text())
    assert "dictionary" not in campaign or campaign["dictionary"] is None
    assert campaign["mechanism"]["name"] == "gcms"
    with gzip.open(DATA / "addresses.txt.gz", "rt", encoding="utf-8") as stream:
        truth = Counter(line.rstrip("\n") for line, _ in zip(stream, range(VISITS), strict=False))
    scene = json.loads((out / "summary.json").read_text())["addresses"]
    found = read_found_items(str(out / "addresses" / "found" / "found.csv"))
    assert len(found) == scene["discovery"]["found"] == scene["items"] > 0
    assert set(found) <= truth.keys()
    assert scene["discovery"]["withheld"] == len(truth) - len(found)
    spread = scene["discovery"]["expected_deviation"]
    assert abs(len(found) - scene["discovery"]["expected"]) < Z_BOUND * spread + 1
    assert scene["largest_z"] < Z_BOUND
    # What a whole run prints of this scene.
    told = output.rpartition("Auxiliary server")[2]
    bins = re.findall(r"^([0-9a-f]{16})\.\.\. +([\d,]+) +([\d.]+) %$", told, re.MULTILINE)
    assert [int(count.replace(",", "")) for _, count, _ in bins[:5]] == [count for _, count in truth.most_common(5)]
    hash_of = Campaign.read(out / "addresses" / "campaign.json").discovery_format.hash
    assert {digits for digits, _, _ in bins} <= {hash_of(address).hex()[:16] for address in truth}
    assert any(0.0 < float(chance) < 100.0 for _, _, chance in bins)
    assert "into a sketch: a matrix of 1,024 rows" in told
    rows = re.findall(r"^(\S+\.example/\S+) +([\d,]+) +(-?[\d,]+) +(\d+) +([-+][\d.]+)$", told, re.MULTILINE)
    assert len(rows) == min(12, len(found))
    for address, true, estimate, error, z in rows:
        assert int(true.replace(",", "")) == truth[address]
        off = (int(estimate.replace(",", "")) - truth[address]) / int(error)
        # The line shows whole numbers.
        assert off == pytest.approx(float(z), abs=0.1)


def test_words_that_the_output_uses_are_explained_and_all_pages_are_listed(shown: tuple[Path, str]) -> None:
    out, output = shown
    words, _, pages = output.partition("\nWords\n")[2].partition("Result pages")
    for word in ("stream", "bin", "replace-one", "z", "odds", "other", "withheld"):
        assert re.search(rf"^ *{word}  \S", words, re.MULTILINE), word
        assert word in output.partition("\nWords\n")[0], word
    listed = [line.strip() for line in pages.splitlines() if line.startswith("  ")]
    assert listed == [str(path) for path in (out / name / "results" / "report.html" for name in SCENES)]
    assert all(Path(path).is_file() for path in listed)
    for title in ("Subset Selection, ss", "Affine Interval Selection, ais", "General Count Mean Sketch, gcms"):
        assert title in output


def test_the_addresses_are_those_of_the_stated_law(tmp_path: Path) -> None:
    draw_addresses.main(tmp_path)
    made, kept = (gzip.decompress((folder / "addresses.txt.gz").read_bytes()) for folder in (tmp_path, DATA))
    assert made == kept


def test_discovered_words_are_shown_with_count_interval_and_truth(shown: tuple[Path, str]) -> None:
    _, output = shown
    table = output.partition("clients sent each of them.")[2]
    heads, _, word = [line for line in table.splitlines() if line.strip()][:3]
    assert heads.split() == ["word", "truth", "count", "95", "%", "interval", "error"]
    truth, count, low, _, high = word.split()[1:6]
    assert float(low) < float(count) < float(high)
    assert abs(float(truth) - float(count)) < 50
    assert "Truth of “other”:" in output


def test_the_page_stands_alone_and_shows_everything(shown: tuple[Path, str]) -> None:
    out, output = shown
    for scene in SCENES:
        page = out / scene / "results" / "report.html"
        assert str(page) in output
        text = page.read_text(encoding="utf-8")
        # Names of XML name spaces are no references; nothing may be loaded from anywhere.
        assert not re.search(r"(?:src|href)\s*=\s*['\"](?!#)|@import|url\((?!#)", text)
        assert "default-src 'none'" in text
        assert "data-chart='intervals'" in text
        assert text.count("<details class='guarantee of-person'>") == 1
        assert "Counts of every hop" in text
        if scene != "adult":
            found = read_found_items(str(out / scene / "found" / "found.csv"))
            assert all(f"<bdi>{item}</bdi>" in text for item in found)


def test_no_report_is_kept(shown: tuple[Path, str]) -> None:
    out, _ = shown
    assert list(out.rglob("results/tally.npz"))
    assert not list(out.rglob("*.blocks"))


def test_a_second_run_needs_overwrite(shown: tuple[Path, str], small: Path) -> None:
    out, _ = shown
    again = CliRunner().invoke(app, ["demo", "--out", str(out), "--data", str(small)])
    assert again.exit_code == 2
    assert "--overwrite" in again.output


def test_missing_data_are_named(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "out"), "--data", str(tmp_path)])
    assert result.exit_code == 2
    assert "education.txt.gz" in result.output
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def noisy(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The scene with noise, of 3,000 clients and 1,000 listed words."""
    root = tmp_path_factory.mktemp("noise")
    run = ["demo", "--noise", "--out", str(root / "out"), "--data", str(cut(root / "data", FEW, 10_000))]
    result = CliRunner().invoke(app, run, env={"COLUMNS": "300"})
    assert result.exit_code == 0, result.output
    return root / "out", result.output


def test_with_noise_every_item_errs_alike_and_intervals_hold(noisy: tuple[Path, str]) -> None:
    """Of the true law an interval misses with probability 0.05 at most.

    The mean square of 1,001 errors has a standard deviation of 6 %: the bounds lie 7 of them off. Noise of one mix
    alone would have half the mean square.
    """
    out, output = noisy
    scene = json.loads((out / "summary.json").read_text())["noise"]
    assert scene["items"] == 1_001
    assert scene["items"] - scene["intervals_holding"] <= binom.isf(1e-6, scene["items"], 0.05)
    assert scene["predicted_error"] == pytest.approx(4.21, abs=5e-3)
    assert 0.75 * 4.21 < scene["error"] < 1.25 * 4.21
    # What is printed: the truth of frequent, rare and absent words, and the error.
    with gzip.open(DATA / "words.txt.gz", "rt", encoding="utf-8") as stream:
        truth = Counter(line.rstrip("\n") for line, _ in zip(stream, range(FEW), strict=False))
    rows = re.findall(r"^(frequent|rare|absent) +(\S+) +([\d,]+) +(-?[\d,.]+) +\S+ to \S+ +([-+][\d.]+)$", output, re.M)
    assert Counter(kind for kind, *_ in rows) == {"frequent": 4, "rare": 4, "absent": 4}
    for kind, word, true, estimate, error in rows:
        number = int(true.replace(",", ""))
        assert word == "other" or number == truth[word]
        assert kind == ("absent" if number == 0 else "rare" if number <= 3 else "frequent")
        assert float(estimate.replace(",", "")) - number == pytest.approx(float(error), abs=0.11)


def test_with_noise_it_tells_who_reads_what(noisy: tuple[Path, str]) -> None:
    out, output = noisy
    heads = output[output.index("party") :].splitlines()
    told = {line[: heads[0].index("sees")].strip(): line for line in heads[2:9]}
    assert "any value" in told["shuffler, with the collector"]
    assert "any sender, any value" in told["auxiliary server"]
    assert "who sent what; exact counts" in told["analyzer"]
    for pair in ("shuffler and analyzer", "auxiliary server and analyzer"):
        assert "the other mix's noise, of standard deviation 2.98" in told[pair]
    assert "every exact count" in told["shuffler and auxiliary server"]
    assert "the value of every client" in told["all three, or one operator with all keys"]
    assert "one process with all keys" in output
    assert "The reports are sealed, not randomised" in output
    words = output.partition("\nWords\n")[2]
    for word in ("mixes", "dummies", "sealed", "other"):
        assert re.search(rf"^ *{word}  \S", words, re.MULTILINE), word
        assert word in output.partition("\nWords\n")[0], word
    # The dummies are those that the batch states.
    (both,) = (json.loads(path.read_text())["dummies"] for path in out.glob("noise/store/results/noise/*/summary.json"))
    added = re.search(r"added ([\d,]+) dummies.* server added ([\d,]+)\..* opened ([\d,]+) boxes", output)
    assert added is not None
    first, second, opened = (int(found.replace(",", "")) for found in added.groups())
    assert first + second == both == opened - FEW
    page = json.loads((out / "summary.json").read_text())["noise"]["page"]
    assert page in output
    assert "sealed" in Path(page).read_text(encoding="utf-8")
    assert not list(out.rglob("*.blocks"))


def test_with_noise_json_is_all_that_is_printed(tmp_path: Path) -> None:
    data = str(cut(tmp_path / "data", 100, 20))
    run = ["demo", "--noise", "--json", "--out", str(tmp_path / "out"), "--data", data]
    result = CliRunner().invoke(app, run)
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    assert printed == json.loads((tmp_path / "out" / "summary.json").read_text())
    assert printed["noise"].keys() == {
        "items", "intervals_holding", "error", "predicted_error", "dummies", "seconds", "page",
    }  # fmt: skip


def test_noise_has_no_discovery_whose_values_would_be_named(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["demo", "--noise", "--hash", "oblivious", "--out", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert "leave one of them out" in result.output
    assert not (tmp_path / "out").exists()


@pytest.mark.long
def test_with_oblivious_names_an_evaluator_plays_too(tmp_path: Path) -> None:
    """Where three words are listed, another of 3,000 is found with probability 1 - 1e-11; so is one of 3,000 visits."""
    out = tmp_path / "out"
    run = ["demo", "--out", str(out), "--data", str(cut(tmp_path / "data", FEW, 3, FEW)), "--hash", "oblivious"]
    result = CliRunner().invoke(app, run, env={"COLUMNS": "300"})
    assert result.exit_code == 0, result.output
    assert result.output.count(f"{FEW:,} evaluations") == 2
    campaign = json.loads((out / "words" / "campaign.json").read_text())
    assert campaign["discovery"]["hash"] == "oblivious"
    assert "hash_key" not in campaign["discovery"]
    summary = json.loads((out / "summary.json").read_text())
    assert all(summary[scene]["discovery"]["found"] > 0 for scene in ("words", "addresses"))


def test_a_scene_in_which_nothing_is_found_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, (*_, scene) = tmp_path / "out", scenes.SCENES
    # Each address is of one client: one of them is found with a probability of 1e-9 at most, delta times their number.
    monkeypatch.setattr(demo, "SCENES", [replace(scene, discovery={**(scene.discovery or {}), "delta": 1e-12})])
    with gzip.open(tmp_path / "addresses.txt.gz", "wt", encoding="utf-8") as stream:
        stream.writelines(f"https://example.org/{number}\n" for number in range(PEOPLE))
    result = CliRunner().invoke(app, ["demo", "--out", str(out), "--data", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "no address was found" in result.output
    assert json.loads((out / "summary.json").read_text())["addresses"]["items"] == 0
