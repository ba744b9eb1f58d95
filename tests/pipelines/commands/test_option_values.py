"""Options out of their range, and paths of another kind: one sentence each, with name, value and what is allowed."""

from __future__ import annotations

import inspect
import json
import shutil
import typing
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import product
from pathlib import Path

import pytest

from hushcount.campaigns.campaign import Campaign
from hushcount.errors import UsageError
from hushcount.formats.models import Part
from pipelines.deployment.settings import DeploymentFile
from shuffler.collector.settings import CollectorPart
from tests.pipelines.conftest import World
from tests.support.commands import COMMANDS
from tests.support.jobs import cli, done, new_campaign, refused, write_lines
from tests.support.site import Site

PLAN = ("plan", "--dictionary-size", 10)
NEW = ("campaign", "new", "--id", "a", "--keys", "KEYS", "--out", "NEW.json", "--open-domain", "--mechanism", "ais")
LEDGER = ("ledger", "set", "--ledger", "NEW.db", "--campaign", "a")
SHUFFLING = ("privacy", "--delta", 1e-8)
INIT = ("init", "KEYS2", "--open-domain")
REAL = ("nan", "inf", "-inf", "-1")
FEW = ("nan", "-1", "1e300", "1e-300")
WHOLE = ("-1", "100000000000000000000000", "1e23", "0.5")
TABLE: dict[tuple[str, str], tuple[tuple[object, ...], tuple[str, ...]]] = {
    ("plan", "epsilon"): ((*PLAN, "--reports", 10), ("0", *FEW)),
    ("plan", "reports"): ((*PLAN, "--epsilon", 1), ("0", *WHOLE)),
    ("plan", "shuffled-epsilon"): ((*PLAN, "--reports", 10), ("0", *FEW)),
    ("plan", "min-batch"): ((*PLAN, "--reports", 10, "--epsilon", 1), ("0", *WHOLE)),
    ("plan", "delta"): ((*PLAN, "--reports", 10, "--shuffled-epsilon", 1), ("0", "1", *REAL)),
    ("plan", "dictionary-size"): (("plan", "--epsilon", 1, "--reports", 10), ("0", "1", *WHOLE)),
    ("plan", "count"): (("plan", "--epsilon", 1, "--reports", 10), ("0", "1024", *WHOLE)),
    ("plan", "target-share"): ((*PLAN, "--epsilon", 1, "--reports", 10), ("2", *REAL)),
    ("plan", "want-error"): ((*PLAN, "--reports", 10), ("0", *FEW)),
    ("plan", "want-share"): ((*PLAN, "--reports", 10), ("0", "1", *REAL)),
    ("plan", "power"): ((*PLAN, "--reports", 10, "--want-share", 0.1), ("0", "1", *REAL)),
    ("plan", "clients"): ((*PLAN, "--epsilon", 1, "--want-share", 0.1), ("0", *WHOLE)),
    ("plan", "max-report-bytes"): (PLAN, ("0", *WHOLE)),
    ("plan", "max-tally-mib"): (PLAN, ("-1", "inf", "1e300")),
    ("init", "clients"): (INIT, ("0", *WHOLE)),
    ("init", "epsilon"): (INIT, ("0", *FEW)),
    ("init", "discovery-epsilon"): (INIT, ("0", *FEW)),
    ("init", "min-batch"): (INIT, ("0", *WHOLE)),
    ("init", "port"): (INIT, ("0", "65536", "-1", "0.5")),
    ("privacy", "epsilon"): ((*SHUFFLING, "--reports", 10), ("0", *FEW)),
    ("privacy", "reports"): ((*SHUFFLING, "--epsilon", 1), ("0", *WHOLE)),
    ("privacy", "delta"): (("privacy", "--epsilon", 1, "--reports", 10), ("0", "1", *REAL)),
    ("privacy", "dictionary-size"): (
        (*SHUFFLING, "--epsilon", 1, "--reports", 10, "--mechanism", "grr"), ("0", "1", *WHOLE),
    ),
    ("privacy", "windows"): ((*SHUFFLING, "--epsilon", 1, "--reports", 1000), ("0", *WHOLE)),
    ("privacy", "cap"): (("privacy", "--discovery", "--epsilon", 1, "--delta", 1e-8), ("0", *WHOLE)),
    ("keys new", "days"): (("keys", "new", "--out", "KEYS2"), ("0", "-1", "0.5", "100000000000000000000000")),
    ("keys rotate", "days"): (("keys", "rotate", "--keys", "KEYS", "--overlap", "7d"), ("0", *WHOLE)),
    ("keys passes", "days"): (("keys", "passes", "--campaign-id", "w", "--out", "KEYS2"), ("0", "-1", "0.5", "101")),
    ("keys new", "number"): (("keys", "new", "--role", "evaluator", "--out", "KEYS2"), ("0", *WHOLE)),
    ("keys rotate", "number"): (("keys", "rotate", "--keys", "KEYS", "--overlap", "7d"), ("0", *WHOLE)),
    ("simulate", "epsilon"): (("simulate", "--mechanism", "grr", "--values", "VALUES"), ("0", *FEW)),
    ("simulate", "runs"): (("simulate", "--mechanism", "grr", "--values", "VALUES", "--epsilon", 1), ("0", *WHOLE)),
    ("simulate", "count"): (
        ("simulate", "--mechanism", "grr", "--values", "VALUES", "--epsilon", 1), ("0", "1024", *WHOLE),
    ),
    ("simulate", "seed"): (("simulate",), WHOLE),
    ("simulate", "people"): (
        ("simulate", "--send", "--site", "http://127.0.0.1:9", "--policy", "none.json"), ("0", *WHOLE),
    ),
    ("ledger set", "epsilon"): ((*LEDGER, "--delta", 0), ("0", "nan", "-1", "1e300")),
    ("ledger set", "delta"): ((*LEDGER, "--epsilon", 1), ("1", *REAL)),
    ("ledger set", "renew-days"): ((*LEDGER, "--epsilon", 1, "--delta", 0), ("0", *WHOLE)),
    ("campaign new", "epsilon"): (NEW, ("0", *FEW)),
    ("campaign new", "cap"): ((*NEW, "--epsilon", 1), ("0", *WHOLE)),
    ("campaign new", "min-batch"): ((*NEW, "--epsilon", 1), ("0", *WHOLE)),
    ("campaign new", "delta"): ((*NEW, "--epsilon", 1), ("0", "1", *REAL)),
    ("campaign new", "memory-values"): ((*NEW, "--epsilon", 1, "--memory"), ("0", *WHOLE)),
    ("campaign new", "count"): ((*NEW[:8], *NEW[9:], "--epsilon", 1), ("0", "1024", *WHOLE)),
    ("campaign new", "epoch"): ((*NEW, "--epsilon", 1), ("0", *WHOLE)),
    ("campaign delegate", "last-epoch"): (("campaign", "delegate"), ("0", *WHOLE)),
    ("campaign delegate", "serial"): (("campaign", "delegate"), ("0", *WHOLE)),
    ("campaign restart", "serial"): (("campaign", "restart"), ("0", *WHOLE)),
    ("campaign new", "discovery-epsilon"): ((*NEW, "--epsilon", 1), ("0", *REAL)),
    ("campaign new", "discovery-delta"): ((*NEW, "--epsilon", 1, "--discovery-epsilon", 1), ("0", "1", *REAL)),
    ("campaign new", "max-value-bytes"): ((*NEW, "--epsilon", 1, "--discovery-epsilon", 1), ("0", *WHOLE)),
    ("job analyze", "confidence"): (("job", "analyze"), ("0", "1", *REAL)),
    ("job analyze", "false-positives"): (("job", "analyze"), ("1", *REAL)),
    ("job estimate", "confidence"): (("job", "estimate"), ("0", "1", *REAL)),
    ("job estimate", "false-positives"): (("job", "estimate"), ("1", *REAL)),
    **{
        (f"ask {question}", "population"): (("ask", question, "--item", "a"), ("-1", "1e23", "0.5"))
        for question in ("item", "sum", "total")
    },
    ("ask top", "population"): (("ask", "top"), ("-1", "1e23", "0.5")),
    **{
        (f"ask {question}", option): (("ask", question), ("0", "-1", "0.5"))
        for question, taken in {
            "top": ("last", "show"), "item": ("last", "show"), "new": ("last", "show"),
            "sum": ("depth", "last", "show"),
            "total": ("depth", "last", "show"), "change": ("depth", "last", "show"),
            "compare": ("depth", "last", "show"),
            "quantile": ("last",), "mean": ("last",), "histogram": ("last",),
        }.items()
        for option in taken
    },
    ("dashboard", "last"): (("dashboard",), ("0", "-1", "0.5")),
    ("dashboard", "port"): (("dashboard",), ("65536", "-1", "0.5")),
    ("status", "last"): (("status",), ("0", "-1", "0.5")),
    ("job stream", "places"): (("job", "stream"), ("0", *WHOLE)),
}  # fmt: skip
HUGE = ("inf", "nan", "1e30", f"{10**30}")
HOSTILE = (*HUGE, "-1", "0")
HELD = {
    "simulate": ("simulate", "--mechanism", "grr", "--values", "VALUES", "--epsilon", 1),
}
"""Commands that would do something with a number that they take, in place of those of the table."""
NAMED = {
    "dictionary-size": ("dictionary-size", "domain"),
    "target-share": ("target-share", "share"),
    "discovery-epsilon": ("discovery.epsilon", "discovery-epsilon", "epsilon"),
    "discovery-delta": ("discovery.delta", "delta"),
    "max-value-bytes": ("max-value-bytes",),
    "min-batch": ("min-batch", "minimum-batch"),
}
"""What the sentence calls an option, where it is not its own name."""


def numbers() -> Iterator[tuple[str, str]]:
    """Yield command and option of every number that the command line takes."""
    for path, command in COMMANDS.items():
        hints = typing.get_type_hints(inspect.unwrap(command.callback), include_extras=True)
        for option, hint in hints.items():
            kind, *more = typing.get_args(hint) if typing.get_origin(hint) is typing.Annotated else (hint,)
            if {int, float} & {kind, *typing.get_args(kind)}:
                named = [word for one in more for word in getattr(one, "param_decls", None) or () if word[:2] == "--"]
                yield " ".join(path), (named or [option.replace("_", "-")])[0].lstrip("-")


def test_every_number_is_in_the_table() -> None:
    assert TABLE.keys() == set(numbers())


def older(keys: Path, directory: Path) -> Path:
    """Return a copy of keys that began an hour before: no two keys begin in the same second."""
    listing = json.loads(Path(shutil.copytree(keys, directory), "public.json").read_text())
    for key in listing["keys"]:
        key["not_before"] = (datetime.fromisoformat(key["not_before"][:19]) - timedelta(hours=1)).isoformat() + "Z"
    (directory / "public.json").write_text(json.dumps(listing))
    return directory


@pytest.mark.parametrize("command", sorted({command for command, _ in TABLE}))
@pytest.mark.long(but=("status",))
def test_a_number_out_of_its_range_is_one_sentence(
    world: World, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, command: str
) -> None:
    places = {
        "KEYS": world.keys, "VALUES": world.values, "KEYS2": tmp_path / "keys", "NEW.json": tmp_path / "a.json",
        "NEW.db": tmp_path / "a.db",
    }  # fmt: skip
    if command == "keys rotate":
        places["KEYS"] = older(world.keys, tmp_path_factory.mktemp("older") / "keys")
    tried = [(name, given, value) for (of, name), (given, values) in TABLE.items() if of == command for value in values]
    for option, given, value in tried:
        run = refused(*(places.get(str(word), word) for word in given), f"--{option}", value)
        said = run.err.strip().replace("_", "-")
        assert said.count("\n") == 0, said
        assert said.startswith("error: "), said
        assert any(word in said for word in ("must be", "range", "is not a valid")), said
        assert any(name in said for name in NAMED.get(option, (option,))), said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", sorted({command for command, _ in TABLE}))
@pytest.mark.long(but=("job estimate",))
def test_every_number_has_a_greatest_value_and_none_makes_a_traceback(
    world: World, tmp_path: Path, command: str
) -> None:
    """What is infinite, no number or huge is refused; what is taken is done, or refused for another reason."""
    places = {
        "KEYS": world.keys, "VALUES": write_lines(tmp_path / "values.txt", ["a", "b"]), "KEYS2": tmp_path / "keys",
        "NEW": tmp_path / "new", "NEW.json": tmp_path / "a.json", "NEW.db": tmp_path / "a.db",
        "NEW.csv": tmp_path / "a.csv",
    }  # fmt: skip
    commands = {option: given for (of, option), (given, _) in TABLE.items() if of == command}
    for option, value in product(commands, HOSTILE):
        given = HELD.get(command, commands[option])
        run = cli(*(places.get(str(word), word) for word in given), f"--{option}", value)
        assert run.status in ((2,) if value in HUGE else (0, 2)), (option, value, run.out, run.err)
        if run.status:
            assert run.err.strip().startswith("error: "), (option, value, run.err)
            assert run.err.strip().count("\n") == 0, (option, value, run.err)


def test_a_number_that_costs_too_much_is_refused_with_its_cost(tmp_path: Path) -> None:
    values = write_lines(tmp_path / "values.csv", ["item,count", "a,500000000", "b,500000000"])
    simulate = ("simulate", "--values", values, "--epsilon", 1)
    refused(*simulate, "--mechanism", "grr", "--runs", 1_000_000, says=["1,000,000,000 reports"])
    pool = (*simulate, "--mechanism", "hcms", "--set", "m=1048576")
    refused(*pool, says=[" 2 GiB"])


def test_a_simulation_in_which_nothing_varies_has_no_ratio_to_that(tmp_path: Path) -> None:
    for mechanism in ["grr", "ais", "olh"]:
        values = write_lines(tmp_path / "values.txt", ["a", "b", "b"])
        given = ("simulate", "--values", values, "--epsilon", 40, "--mechanism", mechanism, "--runs", 2, "--json")
        result = done(*given).json
        assert result["l2"] == 0.0
        assert result["l2_ratio_to_predicted"] in (None, 0.0)
        assert result["bias_z_max"] == 0.0
        done(*given[:-1])


# Fields.


def fields(part: type[Part], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the path of every number in a file of a kind."""
    for name, field in part.model_fields.items():
        for kind in (field.annotation, *typing.get_args(field.annotation)):
            if isinstance(kind, type) and issubclass(kind, Part):
                yield from fields(kind, (*path, name))
            elif kind in (int, float):
                yield (*path, name)


def test_every_number_of_a_campaign_file_has_a_range(world: World, tmp_path: Path, subtests: pytest.Subtests) -> None:
    file = new_campaign(tmp_path / "c.json", world.keys, dictionary=world.dictionary, discovery=1.0)
    for path in fields(Campaign):
        with subtests.test(path=path):
            for value in (*(float(text) for text in HUGE), 10**30, 10**23, -1, 0, 0.5):
                data = json.loads(file.read_text())
                data["passes"] = {"seconds": 3600, "first": "2026-12-01", "days": ["0" * 64]}
                if path[0] == "noise":
                    data["noise"] = {"epsilon": 1.0, "delta": 1e-8, "seconds": 3600}
                    data["shuffle"]["minimum_batch"] = 1
                    del data["mechanism"], data["passes"]
                part = data
                for name in path[:-1]:
                    part = part[name]
                part[path[-1]] = value
                changed = file.with_name("changed.json")
                changed.write_text(json.dumps(data))
                if value == 0.5 and path[-1] in ("epsilon", "delta"):
                    Campaign.read(changed)
                    continue
                with pytest.raises(UsageError) as refusal:
                    Campaign.read(changed)
                assert "\n" not in str(refusal.value)


def test_every_number_of_a_file_that_an_operator_writes_has_a_greatest_value() -> None:
    for part in [DeploymentFile, CollectorPart, Campaign]:
        for path in fields(part):
            kind = part
            for name in path[:-1]:
                of = kind.model_fields[name].annotation
                (kind,) = (one for one in (of, *typing.get_args(of)) if isinstance(one, type) and issubclass(one, Part))
            bounds = kind.model_fields[path[-1]].metadata
            assert any(hasattr(bound, "le") or hasattr(bound, "lt") for bound in bounds), path


# Paths.


def test_inputs_that_are_not_there_or_no_directory(world: World, tmp_path: Path) -> None:
    campaign = new_campaign(tmp_path / "c.json", world.keys, dictionary=world.dictionary, discovery=1.0)
    for job, more in (("shuffle", ()), ("analyze", ("--keys", world.keys)), ("discover", ("--keys", world.keys))):
        for path in (tmp_path / "none", campaign):
            common = ("--campaign", campaign, "--input", path, *more, "--out", tmp_path / "out")
            refused("job", job, *common, says=[f"input directory {path} "])
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["store", "campaigns", "ledger.db", "results", "log"])
def test_a_deployment_whose_paths_are_of_another_kind_has_something_to_say(tmp_path: Path, name: str) -> None:
    """A store that is a file has no segments, so that nothing was due in it."""
    site = Site(tmp_path, discovery=True)
    wanted = "directory"
    if name.endswith(".db"):
        (site.root / name).mkdir()
        wanted = "file"
    else:
        shutil.rmtree(site.root / name, ignore_errors=True)
        write_lines(site.root / name, ["a file"])
    config = site.root / "deployment.toml"
    text = config.read_text()
    if name == "ledger.db" and "ledger" not in text:
        config.write_text(f'ledger = "ledger.db"\n{text}')
    if name in ("results", "log"):
        config.write_text(f'{text}\n[paths]\n{name} = "{name}"\n')
    for command in (("run",), ("status",), ("doctor",), ("ask", "top", "--campaign", "words")):
        says = f"{name.removesuffix('.db')} is {site.root / name}, must be a {wanted}"
        refused(*command, "--config", config, says=[says])
