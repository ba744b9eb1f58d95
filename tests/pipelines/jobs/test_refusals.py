"""What a command refuses, with which exit status and words, and that it then leaves everything as it was."""

from __future__ import annotations

import gzip
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from hushcount.campaigns.campaign import Campaign
from hushcount.errors import UsageError
from hushcount.many_clients import ManyClients
from keys.roles import Role
from tests.pipelines.conftest import LISTED, World
from tests.support.jobs import (
    Chain,
    cli,
    done,
    estimates,
    files_under,
    found,
    new_campaign,
    new_keys,
    refused,
    summary,
    write_lines,
)
from tests.support.records import key_file, read_file, write_rows

PROGRAM = (sys.executable, "-m", "pipelines")


@pytest.fixture(scope="session")
def ready(world: World) -> Chain:
    """A small collection of both streams, encoded and shuffled; tests copy it before they damage it."""
    path = new_campaign(world.root / "ready.json", world.keys, dictionary=world.dictionary, discovery=2.0)
    chain = Chain(path, world.keys)
    lines = ["alpha"] * 60 + ["beta"] * 30 + ["unlisted"] * 60
    chain.encode(write_lines(world.root / "ready.txt", lines))
    chain.shuffle()
    chain.analyze()
    return chain


@pytest.fixture
def mine(ready: Chain, world: World, tmp_path: Path) -> Chain:
    """A copy of `ready` of one's own, keys and dictionaries with it."""
    for path in (world.dictionary, ready.dictionary, ready.campaign_path):
        shutil.copy2(path, tmp_path)
    shutil.copytree(world.keys, tmp_path / "keys")
    for name in ("encoded", "shuffled", "results"):
        shutil.copytree(ready.path(name), tmp_path / f"ready-{name}")
    return Chain(tmp_path / "ready.json", tmp_path / "keys")


# Values.


def test_an_empty_values_file(mine: Chain, tmp_path: Path) -> None:
    empty = write_lines(tmp_path / "empty.txt", [])
    before = files_under(tmp_path)
    refused(
        "job",
        "encode",
        "--campaign",
        mine.campaign_path,
        "--values",
        empty,
        "--out",
        mine.path("new"),
        says=["no values"],
    )
    refused(
        "job", "encode", "--campaign", mine.campaign_path, "--values", tmp_path / "none", "--out", mine.path("new"),
        says=[str(tmp_path / "none"), "No such file"],
    )  # fmt: skip
    assert files_under(tmp_path) == before


def test_a_damaged_gzip_file_of_values(mine: Chain, tmp_path: Path) -> None:
    head = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03"
    for name, content in (("a.gz", b"not gzip"), ("b.gz", head + b"+I"), ("c.gz", head + b"\xff\xff\xff")):
        (tmp_path / name).write_bytes(content)
        refused(
            "job", "encode", "--campaign", mine.campaign_path, "--values", tmp_path / name, "--out", mine.path("new"),
            says=[str(tmp_path / name)],
        )  # fmt: skip
        assert not mine.path("new").exists()


def test_a_file_that_is_no_utf8_is_refused_by_every_reader_of_values(
    subtests: pytest.Subtests, mine: Chain, tmp_path: Path
) -> None:
    """Nearly every line of UTF-16 is UTF-8 too: each would be reported as another value."""
    text = "".join(f"value-{number}\n" for number in range(3_000))
    encode = ("job", "encode", "--campaign", mine.campaign_path, "--out", mine.path("new"), "--values")
    simulate = ("simulate", "--mechanism", "grr", "--epsilon", 1, "--values")
    listed = (*simulate, write_lines(tmp_path / "v", ["a"]), "--dictionary")
    for coding in ("utf-16", "utf-16-be", "utf-16-le", "utf-32", "utf-32-be"):
        path = tmp_path / f"{coding}.txt"
        path.write_bytes(text.encode(coding))
        packed = tmp_path / f"{coding}.txt.gz"
        packed.write_bytes(gzip.compress(path.read_bytes()))
        table = tmp_path / f"{coding}.csv"
        table.write_bytes("item,count\na,1\n".encode(coding))
        for arguments in (
            (*encode, path),
            (*encode, packed),
            (*simulate, path),
            (*simulate, table),
            (*listed, path),
            (*mine.analyze_arguments(out="new"), "--items", path),
            (*mine.analyze_arguments(out="new"), "--items", table),
        ):
            with subtests.test(coding=coding, command=arguments[0], path=arguments[-1]):
                refused(*arguments, says=[str(arguments[-1]), "iconv"])
                assert not mine.path("new").exists()


def test_lines_that_are_no_values_are_counted_and_the_rest_goes_on(mine: Chain, tmp_path: Path) -> None:
    """Not UTF-8; too long for discovery, which is no reason to lose the frequency report; empty is a value."""
    longest = mine.campaign.discovery_format.max_value_bytes
    lines = [b"alpha"] * 5 + [b"\xff\xfe", b"caf\xe9"] + ["ü".encode() * (longest // 2), b"x" * (longest + 1), b""]
    mine.encode(write_lines(tmp_path / "v.txt", lines), out="lines")
    counted = summary(mine.path("lines"))
    assert counted["streams"] == {
        "reports": {"received": 10, "accepted": 8, "rejected": {"not_utf8": 2}},
        "discovery": {"received": 10, "accepted": 7, "rejected": {"not_utf8": 2, "value_too_long": 1}},
    }
    assert counted["rejected"] == {"not_utf8": 4, "value_too_long": 1}


def test_lines_without_a_client_are_counted(mine: Chain, tmp_path: Path) -> None:
    # Without a name all lines would be one client's, under its cap.
    lines = [b"anna\talpha", b"no tab here", b"", b"ben\t", b"cleo\ta\tb", b"dora\t\xff", b"\xff\talpha", b"\talpha"]
    mine.encode(write_lines(tmp_path / "v.txt", lines), "--clients", out="lines")
    counts = summary(mine.path("lines"))["streams"]["reports"]
    assert counts == {"received": 8, "accepted": 3, "rejected": {"no_client": 3, "not_utf8": 2}}


def test_if_every_line_is_bad_nothing_is_written(mine: Chain, tmp_path: Path) -> None:
    for options, line, reason in ((("--clients",), b"no tab", "no_client 3"), ((), b"\xff", "not_utf8 3")):
        values = write_lines(tmp_path / "v.txt", [line] * 3)
        arguments = ("--campaign", mine.campaign_path, "--values", values, *options, "--out", mine.path("lines"))
        refused("job", "encode", *arguments, says=[reason])
        assert not mine.path("lines").exists()


def test_lines_that_look_like_clients_and_values_are_pointed_out(mine: Chain, tmp_path: Path) -> None:
    for line, told in ((b"client\talpha", True), (b"alpha", False)):
        values = write_lines(tmp_path / "v.txt", [line] * 3)
        run = done(
            "job",
            "encode",
            "--campaign",
            mine.campaign_path,
            "--values",
            values,
            "--out",
            mine.path("lines"),
            "--overwrite",
        )
        assert ("add --clients" in " ".join(run.err.split())) == told


def test_the_output_may_not_be_the_input_or_of_another_hop(mine: Chain, tmp_path: Path) -> None:
    encoded, shuffled = mine.path("encoded"), mine.path("shuffled")
    before = files_under(tmp_path)
    common = ("job", "shuffle", "--campaign", mine.campaign_path, "--input", encoded)
    for out in (encoded, encoded.parent):
        refused(*common, "--out", out, "--overwrite", says=["is or contains the input"])
    refused(*common, "--out", mine.path("results"), "--overwrite", says=["analyze"])
    arguments = ("--campaign", mine.campaign_path, "--input", shuffled, "--keys", mine.keys)
    for job in ("analyze", "discover"):
        refused("job", job, *arguments, "--out", shuffled, "--overwrite", says=["is or contains the input"])
        refused("job", job, *arguments, "--out", mine.keys, "--overwrite", says=["is or contains the input"])
    assert files_under(tmp_path) == before


def test_items_may_be_a_table_with_that_column(mine: Chain, tmp_path: Path) -> None:
    asked = ("job", "estimate", "--campaign", mine.campaign_path, "--tally", mine.path("results") / "tally.npz")
    done(*asked, "--items", mine.path("results") / "estimates.csv", "--out", mine.path("again"))
    assert estimates(mine.path("again")) == estimates(mine.path("results"))
    (tmp_path / "other.csv").write_text("name\nalpha\n")
    refused(*asked, "--items", tmp_path / "other.csv", "--out", mine.path("new"), says=["'item'"])


def test_parties_may_make_their_keys_apart(mine: Chain, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    done("keys", "new", "--role", "analyzer", "--out", one)
    done("keys", "new", "--role", "aux-server", "--out", two)
    assert {path.name for path in one.iterdir()} == {key_file(one, "analyzer").name, "public.json"}
    assert {path.name for path in two.iterdir()} == {key_file(two, "aux_server").name, "public.json"}
    new = ("campaign", "new", "--id", "apart", "--discovery-epsilon", 1)
    refused(*new, "--keys", two, "--out", tmp_path / "a.json", says=["analyzer"])
    refused(*new, "--keys", one, "--out", tmp_path / "a.json", says=["auxiliary server"])
    done(*new, "--keys", one, "--keys", two, "--out", tmp_path / "a.json")
    keys = Campaign.read(tmp_path / "a.json").keys
    assert (len(keys.analyzer), len(keys.aux_server)) == (1, 1)


def test_settings_without_effect_are_refused(mine: Chain, tmp_path: Path) -> None:
    new = ("campaign", "new", "--id", "x", "--keys", mine.keys, "--out", tmp_path / "x.json")
    frequency = ("--mechanism", "gcms", "--epsilon", 1, "--open-domain")
    refused(*new, *frequency, "--discovery-delta", 1e-9, says=["delta", "--discovery-epsilon"])
    both = ("--set", "objective=l2", "--set", "target_share=0.1")
    refused(*new, *frequency, *both, says=["objective is 'l2'", "target_share"])
    assert not (tmp_path / "x.json").exists()


def test_a_byte_order_mark_is_no_part_of_the_first_item(mine: Chain, tmp_path: Path) -> None:
    listed = tmp_path / "marked.txt"
    listed.write_bytes(b"\xef\xbb\xbfalpha\r\nbeta\r\n")
    new = ("campaign", "new", "--id", "x", "--mechanism", "grr", "--epsilon", 1, "--dictionary", listed)
    done(*new, "--keys", mine.keys, "--out", tmp_path / "x.json")
    dictionary = Campaign.read(tmp_path / "x.json").read_dictionary()
    assert dictionary is not None
    assert sorted(dictionary.items) == ["alpha", "beta"]


def test_the_client_refuses_a_long_value_without_naming_it(mine: Chain) -> None:
    client = ManyClients(mine.campaign)
    secret = "canary" * 20
    with pytest.raises(UsageError, match=r"120 .* 64") as caught:
        client.discovery_report(secret)
    assert "canary" not in str(caught.value) + repr(caught.value)
    assert len(client.report(secret)) == mine.campaign.sealed_bytes("reports")


# Campaign and key files.


def test_an_invalid_campaign_file_shows_every_error_at_once_each_with_its_field(mine: Chain, tmp_path: Path) -> None:
    data = json.loads(mine.campaign_path.read_text())
    data["id"] = "Not An Id"
    data["mechanism"]["epsilon"] = -1
    data["shuffle"]["cap"] = 0
    data["discovery"]["delta"] = 2
    data["discovery"]["unknown"] = 1
    data["keys"]["analyzer"][0]["id"] = "0" * 16
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(data))
    run = refused("campaign", "show", "--campaign", path, says=[str(path)])
    fields = ("id", "mechanism.epsilon", "shuffle.cap", "discovery.delta", "discovery.unknown", "keys.analyzer.0")
    for field in fields:
        assert re.search(rf"(^|[ ;]){re.escape(field)}( is [^;]*)?: ", run.err), f"{field} is not in {run.err}"
    for command, *more in (
        ("encode", "--values", tmp_path / "dictionary.txt"),
        ("shuffle", "--input", mine.path("encoded")),
        ("analyze", "--input", mine.path("shuffled"), "--keys", mine.keys),
        ("discover", "--input", mine.path("shuffled"), "--keys", mine.keys),
        ("estimate", "--tally", mine.path("results") / "tally.npz", "--items", tmp_path / "dictionary.txt"),
    ):
        refused("job", command, "--campaign", path, *more, "--out", tmp_path / "new", says=["shuffle.cap"])
        assert not (tmp_path / "new").exists()


def test_errors_between_parts_of_a_campaign_are_shown_together(mine: Chain, tmp_path: Path) -> None:
    data = json.loads(mine.campaign_path.read_text())
    data["keys"]["aux_server"] = []
    data["mechanism"] = {"name": "ss", "epsilon": 1.0, "parameters": {"s": 500}}
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(data))
    refused("campaign", "show", "--campaign", path, says=["keys.aux_server", "mechanism", "s is 500"])


def test_a_file_that_is_no_campaign(subtests: pytest.Subtests, tmp_path: Path) -> None:
    for name, content, says in (
        ("a.json", b"{", "JSON"),
        ("a.json", b"[1]", "object"),
        ("a.json", b"\xff\xfe", "UTF-8"),
        ("a.json", b'{"format": 3, "id": "a", "keys": {"analyzer": []}}', "format"),
        ("a.json", b'{"format": 2, "id": "a", "keys": {"analyzer": []}}', "keys.analyzer"),
    ):
        with subtests.test(name=name, content=content):
            (tmp_path / name).write_bytes(content)
            refused("campaign", "show", "--campaign", tmp_path / name, says=[says])


def test_a_campaign_file_is_never_overwritten(mine: Chain) -> None:
    before = mine.campaign_path.read_bytes()
    options = ("--id", "x", "--mechanism", "gcms", "--epsilon", 1, "--open-domain", "--keys", mine.keys)
    refused("campaign", "new", *options, "--out", mine.campaign_path, says=[str(mine.campaign_path), "exists"])
    refused("campaign", "new", *options, "--out", mine.path("x.yaml"), says=[".json"])
    assert mine.campaign_path.read_bytes() == before


def test_campaign_new_refuses(subtests: pytest.Subtests, world: World, tmp_path: Path) -> None:
    new = ("campaign", "new", "--id", "x", "--keys", world.keys, "--out", tmp_path / "x.json")
    for options, says in (
        (("--mechanism", "gmcs", "--epsilon", 1, "--open-domain"), "gcms?"),
        (("--mechanism", "grr", "--epsilon", 1, "--open-domain"), "dictionary"),
        (("--mechanism", "grr", "--epsilon", 1), "--dictionary FILE"),
        (("--mechanism", "grr", "--open-domain"), "epsilon"),
        (("--mechanism", "gcms", "--epsilon", 1, "--open-domain", "--set", "z=1"), "parameter z "),
        (("--mechanism", "gcms", "--epsilon", 1, "--open-domain", "--set", "k"), "name=value"),
        (("--mechanism", "gcms", "--epsilon", 1, "--open-domain", "--set", "k=many"), "k is 'many'"),
        (("--mechanism", "gcms", "--epsilon", 1, "--open-domain", "--set", "objective=best"), "objective"),
        (("--mechanism", "gcms", "--epsilon", 99, "--open-domain"), "epsilon is 99"),
        (("--mechanism", "gcms", "--epsilon", 1, "--open-domain", "--cap", 0), "shuffle.cap"),
        (("--discovery-epsilon", 1, "--discovery-rule", "best"), "discovery.rule"),
        ((), "at least one of them must be given"),
    ):
        with subtests.test(options=options):
            refused(*new, *options, says=[says])
            assert not (tmp_path / "x.json").exists()


def test_a_dictionary_that_changed_or_is_missing(mine: Chain, tmp_path: Path) -> None:
    path = mine.dictionary
    listed = len(path.read_text(encoding="utf-8").splitlines())
    values = ("--values", write_lines(tmp_path / "v.txt", ["alpha"]))
    path.write_text(path.read_text() + "more\n", encoding="utf-8")
    for arguments in (
        ("job", "encode", "--campaign", mine.campaign_path, *values, "--out", mine.path("new")),
        mine.analyze_arguments(out="new"),
    ):
        refused(*arguments, says=[f"dictionary {path} ", str(listed)])
    path.unlink()
    for arguments in (
        ("job", "encode", "--campaign", mine.campaign_path, *values, "--out", mine.path("new")),
        mine.analyze_arguments(out="new"),
    ):
        refused(*arguments, says=[f"dictionary {path} is missing"])
    assert not mine.path("new").exists()


def rewritten(field: str, change: Callable[[Any], object]) -> Callable[[Path], object]:
    """Return what changes one field of a key file."""

    def rewrite(path: Path) -> None:
        record = json.loads(path.read_text())
        path.write_text(json.dumps({**record, field: change(record[field])}))

    return rewrite


def take_the_other(path: Path) -> None:
    path.write_bytes(next(other for other in path.parent.glob("*.key") if other != path).read_bytes())


NO_KEY, OTHER_KEY = "is not a private key", "holds another key"
KEY_DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (Path.unlink, "has no key file"),
    "directory": (lambda path: (path.unlink(), path.mkdir()), "not a regular file"),
    "world-readable": (lambda path: path.chmod(0o644), "mode 0644"),
    "group-readable": (lambda path: path.chmod(0o640), "mode 0640"),
    "of the other role": (take_the_other, OTHER_KEY),
    "without id": (rewritten("id", lambda _: None), OTHER_KEY),
    "of another id": (rewritten("id", lambda _: "0" * 16), OTHER_KEY),
    "changed": (rewritten("secret", lambda secret: secret[::-1]), OTHER_KEY),
    "short": (rewritten("secret", lambda secret: secret[:-2]), NO_KEY),
    "not hexadecimal": (rewritten("secret", lambda _: "z" * 64), NO_KEY),
    "no text": (rewritten("secret", lambda _: 5), NO_KEY),
    **{
        str(content): (partial(Path.write_bytes, data=content), NO_KEY)
        for content in (b"-----BEGIN", b"[1]", b"\xff", b"")
    },
}


def test_a_key_file_that_cannot_be_used(subtests: pytest.Subtests, mine: Chain) -> None:
    roles: dict[Role, tuple[object, ...]] = {
        "analyzer": mine.analyze_arguments(out="new"), "aux_server": mine.discover_arguments(out="new"),
    }  # fmt: skip
    paths = {role: key_file(mine.keys, role) for role in roles}
    whole = {path: path.read_bytes() for path in paths.values()}
    secrets = [json.loads(content)["secret"] for content in whole.values()]
    for (how, (damage, says)), role in product(KEY_DAMAGES.items(), roles):
        with subtests.test(how=how, role=role):
            path = paths[role]
            damage(path)
            run = refused(*roles[role], says=[says, str(mine.keys), path.name])
            assert not any(secret[:16] in run.out + run.err for secret in secrets)
            assert not mine.path("new").exists()
            path.rmdir() if path.is_dir() else path.unlink(missing_ok=True)
            path.write_bytes(whole[path])
            path.chmod(0o600)


def test_the_key_of_another_campaign(mine: Chain, tmp_path: Path) -> None:
    strange = new_keys(tmp_path / "strange")
    for job in ("analyze", "discover"):
        arguments = ("--campaign", mine.campaign_path, "--input", mine.path("shuffled"), "--keys", strange)
        refused("job", job, *arguments, "--out", mine.path("new"), says=[str(strange), "no key file"])
    assert not mine.path("new").exists()


def test_the_wrong_campaign_file_for_an_input(mine: Chain, world: World) -> None:
    other = new_campaign(mine.path("other.json"), mine.keys, dictionary=world.dictionary, discovery=2.0)
    keys = ("--keys", mine.keys)
    for job, source, more in (
        ("shuffle", "encoded", ()),
        ("analyze", "shuffled", keys),
        ("discover", "shuffled", keys),
    ):
        arguments = ("--campaign", other, "--input", mine.path(source), "--out", mine.path("new"))
        refused("job", job, *arguments, *more, says=["fingerprint"])
    tally = ("--tally", mine.path("results") / "tally.npz", "--items", world.dictionary)
    refused("job", "estimate", "--campaign", other, *tally, "--out", mine.path("new"), says=["fingerprint"])
    assert not mine.path("new").exists()


def test_keys_are_never_overwritten(mine: Chain) -> None:
    before = files_under(mine.keys)
    refused("keys", "new", "--out", mine.keys, says=[str(mine.keys), "exists"])
    (mine.keys / "public.json").unlink()
    key_file(mine.keys, "analyzer").unlink()
    left = key_file(mine.keys, "aux_server").name
    refused("keys", "new", "--out", mine.keys, says=[left, "exists"])
    assert files_under(mine.keys) == {left: before[left]}


# Items and tallies.


def test_items_that_the_campaign_cannot_hold(mine: Chain, tmp_path: Path) -> None:
    arguments = mine.analyze_arguments(out="new")
    refused(
        *arguments,
        "--items",
        write_lines(tmp_path / "i.txt", ["alpha", "zeta", "eta"]),
        says=["'zeta' (line 2), 'eta' (line 3)"],
    )
    refused(*arguments, "--items", write_lines(tmp_path / "i.txt", ["alpha", "alpha"]), says=["line 2 is line 1 again"])
    refused(*arguments, "--items", write_lines(tmp_path / "i.txt", []), says=["empty"])
    refused(*arguments, "--items", write_lines(tmp_path / "i.txt", [b"\xff"]), says=["line 1", "UTF-8"])
    refused(*arguments, "--items", tmp_path / "none.txt", says=["none.txt"])
    assert not mine.path("new").exists()


def test_a_tally_that_is_none(mine: Chain, tmp_path: Path) -> None:
    tally = mine.path("results") / "tally.npz"
    whole = tally.read_bytes()
    arguments = ("job", "estimate", "--campaign", mine.campaign_path, "--items", tmp_path / "dictionary.txt", "--out")
    for content in (b"", b"garbage", whole[:100], whole[:-30], b"PK\x03\x04" + bytes(50)):
        tally.write_bytes(content)
        refused(*arguments, mine.path("new"), "--tally", tally, says=["tally"])
    refused(*arguments, mine.path("new"), "--tally", tmp_path / "none.npz", says=["none.npz"])
    assert not mine.path("new").exists()


@pytest.mark.long
def test_a_tally_with_flipped_bits_is_refused_or_as_it_was(mine: Chain, tmp_path: Path) -> None:
    """zlib and zipfile raise what they like on damage. What zip does not check must change nothing."""
    tally = mine.path("results") / "tally.npz"
    whole, first = tally.read_bytes(), estimates(mine.path("results"))
    arguments = ("--campaign", mine.campaign_path, "--items", tmp_path / "dictionary.txt", "--tally", tally)
    outcomes = set()
    for byte in range(0, len(whole), max(1, len(whole) // 60)):
        changed = bytearray(whole)
        changed[byte] ^= 8
        tally.write_bytes(changed)
        run = cli("job", "estimate", *arguments, "--out", mine.path("new"), "--overwrite")
        outcomes.add(run.status)
        assert run.status in (0, 2), run.err
        if run.status == 0:
            assert estimates(mine.path("new")) == first
    assert 2 in outcomes


# Directories.


JOBS = ("encode", "shuffle", "analyze", "discover", "estimate")


def arguments_of(job: str, chain: Chain, tmp_path: Path) -> tuple[object, ...]:
    """Return a command that would succeed, without its --out."""
    dictionary = tmp_path / "dictionary.txt"
    more: dict[str, tuple[object, ...]] = {
        "encode": ("--values", write_lines(tmp_path.with_name(f"{tmp_path.name}.txt"), ["alpha"] * 60)),
        "shuffle": ("--input", chain.path("encoded")),
        "analyze": ("--input", chain.path("shuffled"), "--keys", chain.keys),
        "discover": ("--input", chain.path("shuffled"), "--keys", chain.keys),
        "estimate": ("--tally", chain.path("results") / "tally.npz", "--items", dictionary),
    }
    return ("job", job, "--campaign", chain.campaign_path, *more[job])


def test_a_result_is_replaced_only_if_asked_and_then_whole(
    subtests: pytest.Subtests, mine: Chain, tmp_path: Path
) -> None:
    for job in JOBS:
        with subtests.test(job=job):
            arguments = (*arguments_of(job, mine, tmp_path), "--out", mine.path(f"new-{job}"))
            done(*arguments)
            (mine.path(f"new-{job}") / "left over").write_text("from an older version")
            before = files_under(tmp_path)
            refused(*arguments, says=["--overwrite"])
            assert files_under(tmp_path) == before
            done(*arguments, "--overwrite")
            after = files_under(mine.path(f"new-{job}"))
            assert "left over" not in after
            assert summary(mine.path(f"new-{job}"))["hop"] == job
            assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_foreign_files_are_never_touched(subtests: pytest.Subtests, mine: Chain, tmp_path: Path) -> None:
    for job in JOBS:
        with subtests.test(job=job):
            arguments = arguments_of(job, mine, tmp_path)
            mine.path("new").mkdir(exist_ok=True)
            (mine.path("new") / "thesis.txt").write_text("mine")
            mine.path("file").write_text("mine too")
            before = files_under(tmp_path)
            for option in ((), ("--overwrite",)):
                refused(*arguments, "--out", mine.path("new"), *option, says=[str(mine.path("new")), "not a result"])
                refused(*arguments, "--out", mine.path("file"), *option, says=[str(mine.path("file"))])
            assert files_under(tmp_path) == before


def test_an_empty_directory_and_missing_parents_are_fine(mine: Chain) -> None:
    mine.path("new").mkdir()
    mine.shuffle(out="new")
    done(*mine.shuffle_arguments(mine.path("a") / "b" / "c"))
    # A summary names its batch, by the directory.
    assert {**summary(mine.path("a") / "b" / "c"), "batch": "ready-new"} == summary(mine.path("new"))


def test_names_with_glob_and_markup_characters_are_only_names(mine: Chain, tmp_path: Path) -> None:
    """Beam takes the paths that it matches and deletes for glob patterns."""
    values = write_lines(tmp_path / "v.txt", ["alpha"] * 60)
    base = tmp_path / "[a-z]*?[bold]{x} ü"
    common = ("--campaign", mine.campaign_path)
    done("job", "encode", *common, "--values", values, "--out", base / "encoded")
    done("job", "shuffle", *common, "--input", base / "encoded", "--out", base / "shuffled")
    run = done("job", "analyze", *common, "--input", base / "shuffled", "--keys", mine.keys, "--out", base / "results")
    assert "[a-z]*?[bold]{x} ü" in run.out.replace("\n", "")
    assert summary(base / "results")["accepted"] == 60
    # One that looks like a closing tag.
    tally = ("--tally", mine.path("results") / "tally.npz", "--items", tmp_path / "dictionary.txt")
    done("job", "estimate", *common, *tally, "--out", tmp_path / "a[" / "b]")


# Input directories.


def test_an_input_that_is_empty_or_missing(mine: Chain, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    common = ("--campaign", mine.campaign_path, "--out", mine.path("new"))
    refused("job", "shuffle", *common, "--input", tmp_path / "empty", status=3, says=["reports 0, discovery 0"])
    refused("job", "shuffle", *common, "--input", tmp_path / "none", says=[str(tmp_path / "none")])
    for job in ("analyze", "discover"):
        for name, says in (("empty", "shuffle"), ("none", str(tmp_path / "none"))):
            refused("job", job, *common, "--input", tmp_path / name, "--keys", mine.keys, says=[says])
    refused("job", "analyze", *common, "--input", mine.path("encoded"), "--keys", mine.keys, says=["shuffle"])
    assert not mine.path("new").exists()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_a_damaged_summary(subtests: pytest.Subtests, mine: Chain) -> None:
    """Hop and fingerprint may be right and the counts missing."""
    path = mine.path("shuffled") / "summary.json"
    data = json.loads(path.read_text())
    without = [
        json.dumps({name: value for name, value in data.items() if name != key}) for key in ("streams", "upstream")
    ]
    for text in ("", "[]", "{}", '{"hop": "shuffle"}', "\x00", *without):
        with subtests.test(text=text):
            path.write_text(text)
            refused(*mine.analyze_arguments(out="new"), says=["ready-shuffled"])
            assert not mine.path("new").exists()


# The minimum batch.


@pytest.mark.parametrize("short", ["reports", "discovery"])
def test_a_stream_below_the_minimum_batch_is_left_out_and_counted(mine: Chain, tmp_path: Path, short: str) -> None:
    """The rule of batches: neither stream waits for the other."""
    mine.encode(write_lines(tmp_path / "v.txt", ["alpha"] * 50), out="few")
    (mine.path("few") / "summary.json").unlink()
    (file,) = (mine.path("few") / short).glob("*.blocks")
    header, rows = read_file(file)
    write_rows(file, header.kind, rows[1:], mine.campaign)
    before = files_under(mine.path("few"))
    ran = done(
        "job", "shuffle", "--campaign", mine.campaign_path, "--input", mine.path("few"), "--out", mine.path("new")
    )
    assert f"{short} is left out: 49 of 49" in " ".join(ran.out.split())
    counted = summary(mine.path("new"))
    other = "reports" if short == "discovery" else "discovery"
    assert counted["left_out"] == {short: {"received": 49, "accepted": 49, "rejected": {}}}
    assert counted["streams"] == {other: {"received": 50, "accepted": 50, "rejected": {}}}
    assert (counted["received"], counted["accepted"]) == (50, 50)
    assert not (mine.path("new") / short).exists()
    assert files_under(mine.path("few")) == before


@pytest.mark.parametrize("short", ["reports", "after duplicates"])
def test_below_the_minimum_batch_nothing_is_written(mine: Chain, tmp_path: Path, short: str) -> None:
    """What counts is what would be forwarded, not what arrived."""
    mine.encode(write_lines(tmp_path / "v.txt", ["alpha"] * 49), out="few")
    if short == "after duplicates":
        (mine.path("few") / "summary.json").unlink()
        for stream in ("reports", "discovery"):
            (file,) = (mine.path("few") / stream).glob("*.blocks")
            shutil.copy(file, file.with_name("again.blocks"))
    before = files_under(tmp_path)
    arguments = ("--campaign", mine.campaign_path, "--input", mine.path("few"), "--out", mine.path("new"))
    refused("job", "shuffle", *arguments, status=3, says=["reports 49, discovery 49", "50"])
    assert files_under(tmp_path) == before
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_the_minimum_batch_itself_is_enough(mine: Chain, tmp_path: Path) -> None:
    mine.encode(write_lines(tmp_path / "v.txt", ["alpha"] * 50), out="enough")
    mine.shuffle(source="enough", out="new")
    assert summary(mine.path("new"))["streams"]["reports"]["accepted"] == 50


# Usage, engines, and the program as a process.


def test_wrong_usage_is_status_2(mine: Chain, tmp_path: Path) -> None:
    shuffle = mine.shuffle_arguments(mine.path("new"))
    for arguments in (
        ("job", "shuffle"),
        ("nothing",),
        (*shuffle, "--unknown"),
        (*shuffle, "stray"),
        (*shuffle, "--", "stray"),
        (*shuffle, "--", "--no_such_beam_option=1"),
        (*shuffle, "--runner", "NoSuchRunner"),
        (*shuffle, "--", "--direct_num_workers=many"),
        ("job", "analyze", *shuffle[2:], "--keys", mine.keys, "--false-positives", 0.5),
        ("campaign", "show", "--campaign", tmp_path / "none.json"),
    ):
        run = cli(*arguments)
        assert run.status == 2, f"{arguments}: {run}"
        assert run.err.strip()
        assert "Traceback" not in run.err
    assert not mine.path("new").exists()
    refused(*shuffle, "--", "--no_such_beam_option=1", says=["no_such_beam_option"])
    refused(*shuffle, "--runner", "NoSuchRunner", says=["NoSuchRunner"])


@pytest.mark.long
def test_beam_options_reach_the_engine(mine: Chain) -> None:
    """Two workers in threads give what one gives."""
    options = ("--direct_num_workers=2", "--direct_running_mode=multi_threading")
    mine.shuffle("--", *options, out="new")
    assert summary(mine.path("new"))["streams"] == summary(mine.path("shuffled"))["streams"]
    mine.analyze("--", *options, source="new", out="more")
    assert summary(mine.path("more"))["accepted"] == 150


def program(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "200"}
    return subprocess.run(  # noqa: S603  # our own program
        [*PROGRAM, *map(str, arguments)], capture_output=True, text=True, env=environment, check=False, **options
    )  # type: ignore[call-overload]


@pytest.mark.long
def test_the_program_ends_with_one_sentence_and_its_status(mine: Chain, tmp_path: Path) -> None:
    few = write_lines(tmp_path / "v.txt", ["alpha"] * 49)
    mine.encode(few, out="few")
    shuffle = ("job", "shuffle", "--campaign", mine.campaign_path, "--out", mine.path("new"), "--input")
    run = program(*shuffle, mine.path("few"))
    assert (run.returncode, run.stdout) == (3, "")
    assert run.stderr.startswith("not yet: ")
    assert run.stderr.count("\n") == 1
    good = program(*shuffle, mine.path("encoded"), "--json")
    assert (good.returncode, good.stderr) == (0, "")
    assert json.loads(good.stdout)["accepted"] == 300


@contextmanager
def full_disk(size: int) -> Iterator[None]:
    """Let no file of this process grow above `size` bytes: writing more fails as on a full disk.

    Python ignores the signal that the system sends as well, so that a write raises OSError.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    assert signal.getsignal(signal.SIGXFSZ) == signal.SIG_IGN
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_disk_that_fills_up_leaves_no_half_file(subtests: pytest.Subtests, mine: Chain, tmp_path: Path) -> None:
    for job in JOBS:
        with subtests.test(job=job):
            arguments = arguments_of(job, mine, tmp_path)
            done(*arguments, "--out", mine.path(f"new-{job}"))
            before = files_under(tmp_path)
            for out, option in ((mine.path("other"), ()), (mine.path(f"new-{job}"), ("--overwrite",))):
                with full_disk(300):
                    run = refused(*arguments, "--out", out, *option, status=1, says=["File too large"])
                assert run.out == ""
                assert run.err.startswith("error: ")
                assert run.err.strip().count("\n") == 0
                assert files_under(tmp_path) == before
                assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
                assert not mine.path("other").exists()


def test_a_disk_that_fills_up_when_keys_or_a_campaign_are_made(mine: Chain, tmp_path: Path) -> None:
    """What was written of a file before the disk was full must not stand in the way of the next try."""
    options = ("--id", "x", "--mechanism", "gcms", "--epsilon", 1, "--open-domain", "--keys", mine.keys)
    before = files_under(tmp_path)
    for size, arguments in (
        (50, ("keys", "new", "--out", tmp_path / "new")),
        (300, ("campaign", "new", *options, "--out", tmp_path / "new.json")),
    ):
        with full_disk(size):
            run = cli(*arguments)
        assert run.status != 0
        assert "File too large" in run.err
        assert files_under(tmp_path) == before


def test_the_copy_is_of_the_collection_that_it_says(mine: Chain) -> None:
    """So that no test above passes because its input was bad in another way."""
    assert Campaign.read(mine.campaign_path).dictionary is not None
    assert summary(mine.path("results"))["accepted"] == 150
    assert mine.campaign.require_keep_rule().keep_probability(60) > 1.0 - 1e-9
    assert set(estimates(mine.path("results"))) == set(LISTED)
    mine.analyze(out="again")
    assert estimates(mine.path("again")) == estimates(mine.path("results"))
    assert found(mine.discover()) == ["unlisted"]
