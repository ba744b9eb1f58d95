"""Campaigns for addresses: the public suffix list, dictionaries in one spelling, and hosts that a policy names."""

from __future__ import annotations

from datetime import timedelta
from importlib.resources import files
from pathlib import Path

import pytest

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.parts import UrlPart
from hushcount.errors import FormatError, UsageError
from hushcount.many_clients import ManyClients
from hushcount.newest import Untrusted
from hushcount.policy import Policy, terms_of
from hushcount.report_making import items_for, new_values
from hushcount.urls import OTHER, Suffixes, address_of, item_of_url
from keys.rotation import rotate
from pipelines.jobs.simulated_people import of_values
from pipelines.jobs.url_parts import url_part
from tests.support.collecting import collect
from tests.support.jobs import new_campaign, new_keys, refused, write_lines
from tests.support.next_epoch import follow_with, items, newest
from tests.support.site import Site, at
from tests.vectors.subjects.campaigns import WORDS, campaign
from tests.vectors.subjects.signing import AT, OPERATOR, moment, part, signed

PRIVATE = url_part("site:private")
assert PRIVATE is not None
assert PRIVATE.suffixes is not None
TAKES = ("site", "host", "path", "text")
RULES = Suffixes(frozenset(PRIVATE.suffixes))


def test_sites_of_the_public_suffix_lists_own_tests() -> None:
    tested = 0
    text = files("publicsuffixlist").joinpath("test_psl.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        if not line.startswith("checkPublicSuffix("):
            continue
        host, site = (one.strip().strip("'") for one in line[len("checkPublicSuffix(") : -2].split(","))
        address = None if host == "null" else address_of(f"https://{host}")
        tested += 1
        # Names of one label, and those that begin with a dot, are no addresses here.
        if address is None:
            assert site == "null" or "." not in site or host.startswith("."), line
            continue
        expected = OTHER if site == "null" else address_of(f"https://{site}")
        assert RULES.site(address.host) == (expected if isinstance(expected, str) else expected and expected.host), line
    assert tested > 70


def test_the_private_section_counts_only_if_asked() -> None:
    plain = url_part("site")
    assert plain is not None
    for item, wanted in (("alice.github.io", "github.io"), ("a.b.example.co.uk", "example.co.uk"), ("co.uk", OTHER)):
        assert plain.item_of(f"https://{item}", 64, None) == wanted
    assert item_of_url("https://alice.github.io", None, RULES) == "alice.github.io"


def test_a_client_tells_paths_of_the_policys_hosts_only() -> None:
    made = campaign("paths")
    terms = terms_of(made, (part(OPERATOR),), hosts=("www.example.com",))
    policy = Policy(**dict(terms))
    hosts = policy.hosts_for(made)
    values = ["https://www.example.com/a/b/c", "https://example.com/a", "https://sub.www.example.com/", "nowhere"]
    assert new_values(made, None, values, hosts) == ["www.example.com/a/b", None, None, None]
    with pytest.raises(UsageError, match="hosts"):
        terms_of(made, (part(OPERATOR),))
    with pytest.raises(FormatError, match="hosts"):
        terms_of(made, (part(OPERATOR),), hosts=("WWW.example.com",))
    # The same hosts bound paths of one segment.
    one = made.model_copy(update={"url": UrlPart(take="path", segments=1)})
    assert new_values(one, None, values, policy.hosts_for(one)) == ["www.example.com/a", None, None, None]
    with pytest.raises(UsageError, match="hosts"):
        terms_of(campaign("hosts"), (part(OPERATOR),), hosts=("www.example.com",))
    with pytest.raises(Untrusted, match="names no hosts"):
        Policy(**dict(terms) | {"hosts": ()}).check(made, signed(made), moment(AT))


def test_a_policy_states_the_most_that_is_taken_of_an_address() -> None:
    for name, take in (("sites", "site"), ("number", "site"), ("hosts", "host"), ("both", "text")):
        terms = terms_of(campaign(name), (part(OPERATOR),))
        assert terms.take == take
        for other in ("sites", "hosts", "both"):
            made = Campaign.model_validate({**campaign(other).model_dump(), "id": campaign(name).id})
            wide = {"max_epsilon": 9.0, "max_discovery_epsilon": 9.0, "max_delta": 0.5, "max_report_bytes": 1 << 20}
            policy = Policy(**dict(terms) | wide)
            if TAKES.index(terms_of(made, (part(OPERATOR),)).take) <= TAKES.index(take):
                assert policy.check(made, signed(made), moment(AT)) is not None
            else:
                with pytest.raises(Untrusted, match="of a value"):
                    policy.check(made, signed(made), moment(AT))


def test_what_is_no_address_is_other_and_a_blank() -> None:
    made = campaign("hosts")
    client = ManyClients(made, dictionary=WORDS)
    sizes = {len(client.report(value)) for value in ("https://www.example.com", "x", 2.5, "https://\ud800", "")}
    assert sizes == {made.sealed_bytes("reports")}
    values = ["https://a.b/x", "https://one", "ftp://a.b", None, f"https://{'a' * 30}.b"]
    assert new_values(made, WORDS, values) == ["a.b", None, None, None, None]
    assert items_for(made, WORDS, ["https://one", "one"]).tolist() == [len(WORDS.items)] * 2


def test_an_address_is_too_long_only_if_what_is_taken_of_it_is() -> None:
    made, rest = campaign("hosts"), "x" * 5_000
    assert not made.is_too_long(f"https://a.b/{rest}?{rest}")
    assert not made.is_too_long(f"https://{'a' * 40}.b/"), "it is other"
    assert campaign("both").is_too_long(f"https://a.b/{rest}")


def test_true_counts_of_simulated_people_are_of_what_is_taken() -> None:
    truth = [("https://a.b/1", 5), ("http://A.b./2", 4), ("https://c.d", 3), ("a.b", 2)]
    assert of_values(campaign("hosts"), truth) == [("a.b", 9), ("c.d", 3), ("other", 2)]


def test_a_dictionary_of_addresses_has_the_spelling_of_clients(tmp_path: Path) -> None:
    keys = new_keys(tmp_path / "keys")
    listed = write_lines(tmp_path / "hosts.txt", ["https://WWW.Example.com/", "www.example.com", "http://a.b./x?y"])
    made = Campaign.read(new_campaign(tmp_path / "hosts.json", keys, "--url", "host", dictionary=listed))
    assert items(made) == ("a.b", "www.example.com")
    wrong = write_lines(tmp_path / "wrong.txt", ["www.example.com", "localhost"])
    refused(*_new(tmp_path, keys, wrong), "--url", "host", says=["item 2", "'localhost'", "address"])
    for form in ("url", "path", "path:0", "path:9", "path:x", "host:1", "site:public", ""):
        refused(*_new(tmp_path, keys, listed), "--url", form, says=["--url"])
    keyed = ("--discovery-epsilon", 1, "--url", "path:1")
    refused(*_new(tmp_path, keys, listed), *keyed, says=["url", "oblivious"])


def test_the_next_epoch_takes_the_same_of_addresses(tmp_path: Path) -> None:
    """From clients' addresses to the next dictionary: unknown sites are found, and join in the spelling of clients."""
    site = Site(tmp_path)
    listed = write_lines(tmp_path / "sites.txt", ["example.com", "example.org"])
    path = site.add("sites", "--url", "site", dictionary=listed, discovery=1.0)
    follow_with(site, "", "sites")
    visits = [
        *[f"https://www{number % 9}.Example.com/{number}?{'long' * 40}={number}" for number in range(200)],
        *[f"https://blog.{'' if number % 2 else 'uk.'}new-site.co.uk:443/{number}" for number in range(200)],
        "http://192.168.0.1/", "http://printer/", "about:blank",
    ]  # fmt: skip
    collect(site.store, path, visits, day=0)
    looked = site.run(1.1)
    assert (looked.problems, looked.published) == ([], ["sites/2"])
    first, second = Campaign.read(path), newest(site, "sites")
    assert second.url == first.url
    assert items(second) == ("example.com", "example.org", "new-site.co.uk")
    # New keys open the reports of a rehearsal, whose values are no addresses.
    rotate(site.keys, ("analyzer", "aux_server"), overlap=timedelta(days=7), begins=at(2.05))
    looked = site.run(2.1)
    assert (looked.problems, looked.published) == ([], ["sites/3"])


def _new(folder: Path, keys: Path, listed: Path) -> tuple[object, ...]:
    options = ("--id", "hosts", "--mechanism", "grr", "--epsilon", 1, "--dictionary", listed)
    return ("campaign", "new", *options, "--keys", keys, "--out", folder / "refused.json")
