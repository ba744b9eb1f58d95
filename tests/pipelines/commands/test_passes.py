"""Keys of passes: made, added to, named in a campaign, published and watched, as an operator does it."""

from __future__ import annotations

import json
import stat
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from hushcount.campaigns.campaign import Campaign
from hushcount.errors import UsageError
from hushcount.passes.pass_keys import period_of, read_pass_keys
from keys.issuing import IssuingKey, read_private_keys
from pipelines.audit.doctor import examine
from pipelines.deployment.publish import publish
from tests.hushcount.delivery.fake_collector import campaign, collecting, policy
from tests.hushcount.delivery.fake_issuer import issuing, pass_keys
from tests.support.collecting import START
from tests.support.jobs import cli, done, new_campaign, refused
from tests.support.site import Site, at


def make(site: Site, *more: object, campaign: str = "pages", out: str = "passes", days: int = 3) -> Path:
    """Make keys from the first day of the tests on, and return the public file."""
    done("keys", "passes", "--campaign-id", campaign, "--out", site.root / out, "--days", days, *more)
    return site.root / out / f"{campaign}.passes.json"


def first_day(site: Site, **more: Any) -> Path:
    return make(site, "--first", START.date(), **more)


def taking(site: Site, way: str = "privacy-pass", window: str = "1d") -> None:
    """Let the deployment have a collector."""
    text = site.config.read_text().replace('length = "1d"', f'length = "{window}"')
    site.config.write_text(f'{text}\n[collector]\nname = "one"\nauthentication = "{way}"\n')


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_the_private_file_is_private_and_has_the_primes_of_the_public_one(site: Site) -> None:
    public = first_day(site)
    private = public.with_name("pages.private.json")
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    for own, shown in zip(read_private_keys(private).days, read_pass_keys(public).days, strict=True):
        assert IssuingKey(bytes.fromhex(own[0])).public_key.hex() == shown[0]
        assert own[0][:100] not in public.read_text()


def test_a_second_run_adds_days_and_changes_none(site: Site) -> None:
    tomorrow = (at(0) + timedelta(days=36_000)).date()
    before = read_pass_keys(make(site, "--first", tomorrow))
    after = read_pass_keys(make(site, days=2))
    assert after.days[:3] == before.days
    assert len(after.days) == 5
    arguments = ("keys", "passes", "--campaign-id", "pages", "--out", site.root / "passes")
    refused(*arguments, "--window", "1h", says=["pages.private.json"])
    refused(*arguments, "--first", "2026-12-01", says=["--first"])
    refused(*arguments, "--days", 96, says=["100"])


@pytest.mark.parametrize(
    ("window", "evaluator", "seconds"),
    [
        (timedelta(minutes=10), False, 3600),
        (timedelta(minutes=10), True, 7200),
        (timedelta(hours=1), False, 3600),
        (timedelta(hours=8), True, 28_800),
        (timedelta(days=1), True, 86_400),
    ],
)
def test_a_pass_is_good_for_whole_windows_and_a_client_needs_24_a_day_at_most(
    window: timedelta, evaluator: bool, seconds: int
) -> None:
    assert period_of(window, evaluator) == seconds
    assert 86_400 // seconds * (1 + evaluator) <= 24


@pytest.mark.parametrize("window", [timedelta(days=2), timedelta(weeks=1), timedelta(hours=7)])
def test_windows_that_do_not_divide_a_day_have_no_passes(window: timedelta) -> None:
    with pytest.raises(UsageError, match="divide"):
        period_of(window, False)


def test_a_campaign_is_published_with_its_keys_and_the_next_epoch_keeps_or_extends_them(site: Site) -> None:
    public = first_day(site)
    file = new_campaign(site.root / "pages.json", site.keys, "--passes", public, dictionary=site.words)
    assert Campaign.read(file).passes == read_pass_keys(public).part()
    shown = done("campaign", "show", "--campaign", file, "--json").json
    assert (shown["passes_from"], shown["pass_seconds"]) == (str(START.date()), 86_400)
    publish(site.deployment, file, now=at(0.5))
    folder = site.root / "campaigns" / "pages"
    assert read_pass_keys(folder / "passes.json") == read_pass_keys(public)
    kept = new_campaign(site.root / "pages.2.json", site.keys, "--id", "pages", "--after", file, dictionary=site.words)
    assert Campaign.read(kept).passes == Campaign.read(file).passes
    publish(site.deployment, kept, now=at(1.5))
    data = json.loads(public.read_text())
    other = json.loads(make(site, "--first", START.date(), out="others", days=5).read_text())
    longer = site.root / "longer.passes.json"
    longer.write_text(json.dumps({**data, "days": data["days"] + other["days"][3:]}))
    third = new_campaign(
        site.root / "pages.3.json", site.keys, "--id", "pages", "--after", kept, "--passes", longer,
        dictionary=site.words,
    )  # fmt: skip
    publish(site.deployment, third, now=at(2.5))
    assert len(read_pass_keys(folder / "passes.json").days) == 5
    # An old file beside the next campaign file takes no days away.
    (site.root / "pages.passes.json").write_bytes(public.read_bytes())
    file = site.root / "pages.4.json"
    fourth = new_campaign(file, site.keys, "--id", "pages", "--after", third, dictionary=site.words)
    publish(site.deployment, fourth, now=at(3.5))
    assert len(read_pass_keys(folder / "passes.json").days) == 5
    longer.write_text(json.dumps(other))
    fifth = new_campaign(
        site.root / "pages.5.json", site.keys, "--id", "pages", "--after", fourth, "--passes", longer,
        dictionary=site.words,
    )  # fmt: skip
    with pytest.raises(UsageError, match="differ"):
        publish(site.deployment, fifth, now=at(4.5))


@pytest.mark.parametrize("change", ["a later first day", "another collector", "another window"])
def test_published_keys_are_never_lost(site: Site, change: str) -> None:
    """An epoch that ends must take its passes to the end, so no new file may lack them."""
    public, kept = first_day(site, days=2), site.root / "campaigns" / "pages" / "passes.json"
    file = new_campaign(site.root / "pages.json", site.keys, "--passes", public, dictionary=site.words)
    publish(site.deployment, file, now=at(0.5))
    before = kept.read_bytes()
    options: dict[str, list[object]] = {
        "a later first day": ["--first", at(2.5).date()],
        "another collector": ["--first", at(2.5).date(), "--collector", "two"],
        "another window": ["--first", at(0.5).date(), "--window", "12h"],
    }
    other = make(site, *options[change], out="others")
    site.config.write_text(f'collectors = ["{"two" if "collector" in change else "one"}"]\n{site.config.read_text()}')
    following = new_campaign(
        site.root / "pages.2.json", site.keys, "--id", "pages", "--after", file, "--passes", other,
        "--config", site.config, dictionary=site.words,
    )  # fmt: skip
    with pytest.raises(UsageError, match="must keep"):
        publish(site.deployment, following, now=at(1.5))
    assert kept.read_bytes() == before
    if change == "a later first day":
        publish(site.deployment, following, now=at(3.5))
        assert read_pass_keys(kept) == read_pass_keys(other)


def test_keys_of_another_campaign_or_of_other_collectors_are_refused(site: Site) -> None:
    for public in (first_day(site, campaign="other"), make(site, "--collector", "two", out="two")):
        refused(
            "campaign", "new", "--id", "pages", "--mechanism", "grr", "--epsilon", 1, "--dictionary", site.words,
            "--keys", site.keys, "--passes", public, "--out", site.root / f"{public.parent.name}.json",
            says=["pass keys"],
        )  # fmt: skip
    assert not (site.root / "passes.json").exists()


def findings(site: Site, day: float) -> dict[str, tuple[str, str]]:
    found = examine(site.deployment, at(day))
    return {one.name: (one.verdict, one.says) for one in found if one.name.startswith("pass")}


def test_doctor_counts_the_days_and_compares_campaign_and_collector(site: Site) -> None:
    taking(site, "client-token")
    assert findings(site, 1.2) == {}
    public = first_day(site, days=20)
    file = new_campaign(site.root / "pages.json", site.keys, "--passes", public, dictionary=site.words)
    publish(site.deployment, file, now=at(0.5))
    assert findings(site, 1.2)["passes of epoch 1 of pages at the collector"][0] == "bad"
    assert findings(site, 1.2)["pass keys of epoch 1 of pages"][0] == "good"
    assert findings(site, 7.2)["pass keys of epoch 1 of pages"][0] == "warning"
    assert findings(site, 20.2)["pass keys of epoch 1 of pages"][0] == "bad"


def test_send_asks_the_issuer_with_the_header_of_a_file(tmp_path: Path) -> None:
    keys, header, terms = pass_keys(), tmp_path / "header", tmp_path / "policy.json"
    header.write_text("Bearer account\n")
    header.chmod(0o600)
    with collecting(epochs=[campaign(passes=keys.part(), discovery=None)]) as collector, issuing(keys) as issuer:
        terms.write_text(policy().model_dump_json())
        words = ("send", "--site", collector.address, "--policy", terms, "one", "--json")
        asks = ("--issuer", issuer.address, "--authorization-file", header)
        assert done(*words, *asks).json["sent"] == 1
        assert issuer.requests[0][1] == "Bearer account"
        issuer.problem = (401, "not_entitled")
        run = cli(*words, *asks, "--folder", tmp_path / "own")
        assert (run.status, run.json["no_pass"], run.json["waiting"]) == (3, True, 1)
        refused(*words, "--issuer", issuer.address, says=["authorization-file"])
        header.write_text("")
        refused(*words, *asks, says=["authorization file"])
        refused(*words, says=["issuer"], status=1)
