"""Jobs and commands that an operator runs by hand on the stored deployment, and what they write and print."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.golden.described import Mask, described_tree
from tests.golden.site import AFTER, CAMPAIGNS, COLLECTOR, NAMES, PROSE, restored
from tests.shuffler.collector.running import Site as Running
from tests.shuffler.collector.running import running, wait_for
from tests.support.jobs import cli, done, files_under, write_lines

WINDOWS = "store/segments/words"
SIGNED = "ss.json"
JOBS = ("encode", "shuffle", "discover", "analyze", "estimate", "replay")


def hand_mask(root: Path) -> Mask:
    """Return what is not fixed of jobs that sign nothing: what they are made from is."""
    shuffled = ("*shuffled/*", "*dead_letter/*", "encoded/*")
    return Mask(root, keys=("*.says",), shuffled=shuffled, drawn=("encoded/*",), prose=PROSE, names=NAMES)


def chain(root: Path) -> dict[str, Any]:
    """Encode, shuffle, discover, analyze, estimate, replay, and analyze with a key that was retired."""
    site, out = restored(root / "site", over=AFTER), root / "out"
    out.mkdir()
    mask = hand_mask(out)
    campaign = ("--campaign", site / "campaigns/words/words.json")
    segments = next((site / WINDOWS).iterdir())
    values = write_lines(root / "values.txt", [f"client {index}\talpha" for index in range(3)])
    items = write_lines(root / "items.txt", ["größe"])
    shuffled = (*campaign, "--input", out / "shuffled", "--keys", site / "keys")
    steps: dict[str, tuple[object, ...]] = {
        "encode": ("job", "encode", *campaign, "--values", values, "--clients", "--out", out / "encoded"),
        "shuffle": ("job", "shuffle", *campaign, "--input", segments / "20210301T000000Z", "--out", out / "shuffled"),
        "discover": ("job", "discover", *shuffled, "--out", out / "found"),
        "analyze": ("job", "analyze", *shuffled, "--found", out / "found", "--out", out / "results"),
        "estimate": (
            "job", "estimate", *campaign, "--tally", out / "results/tally.npz", "--items", items, "--out",
            out / "again",
        ),
        "list": ("repair", "dead-letters", "--input", out / "results"),
        "replay": (
            "repair", "replay", *campaign, "--input", out / "results", "--reason", "wrong_campaign", "--out",
            out / "replayed",
        ),
    }  # fmt: skip
    printed = {name: _printed(mask, *arguments) for name, arguments in steps.items()}
    _retire(site / "keys", "analyzer")
    printed["keys"] = _printed(mask, "keys", "list", "--keys", site / "keys")["printed"]["keys"]
    printed["analyze, retired"] = _printed(mask, "job", "analyze", *shuffled, "--out", out / "retired")
    files = described_tree(out, mask, {})
    summaries = [data for name, data in files.items() if name.endswith("/summary.json")]
    for name in JOBS:
        # Its summary, and where that is.
        beside = {"out": printed[name]["printed"].pop("out")}
        assert printed[name]["printed"] in summaries, f"{name} prints another summary than it writes"
        printed[name]["printed"] = beside
    return {"hand-printed": printed, "hand-files": files}


def _printed(mask: Mask, *arguments: object) -> dict[str, Any]:
    run = cli(*arguments, "--json")
    return {"status": run.status, "printed": mask.data(run.json) if run.out else None}


def _retire(keys: Path, role: str) -> None:
    """Leave what `hushcount keys retire` leaves, which does not retire a key that clients still seal to."""
    listing = json.loads((keys / "public.json").read_text())
    for key in listing["keys"]:
        if key["role"] == role:
            key["retired_at"] = "2021-06-01T00:00:00Z"
            (keys / f"{role}-{key['id']}.key").unlink()
    (keys / "public.json").write_text(json.dumps(listing))


def campaigns(root: Path) -> dict[str, Any]:
    """Show each stored campaign file and redact it, and verify the one that is signed."""
    mask = Mask(root, prose=PROSE)
    shown: dict[str, Any] = {}
    for path in sorted(CAMPAIGNS.glob("*.json")):
        show = _printed(mask, "campaign", "show", "--campaign", path)
        redacted = root / f"redacted-{path.stem}.json"
        redact = done("campaign", "redact", "--campaign", path, "--out", redacted, "--json").json
        assert redact["fingerprint"] == show["printed"]["fingerprint"]
        shown[path.name] = show
        if redact["campaign"]["discovery"] is None:
            # The file leaves out what is not set.
            given = {name: part for name, part in show["printed"].pop("campaign").items() if part is not None}
            assert given == json.loads(path.read_text())
        if redact["campaign"]["discovery"] is not None:
            shown[f"{path.name}, redacted"] = json.loads(redacted.read_text())
    verify = ("campaign", "verify", "--campaign", CAMPAIGNS / SIGNED, "--keys", CAMPAIGNS / "operator")
    shown["verify"] = _printed(mask, *verify)
    return {"campaigns": shown}


def collector(root: Path) -> dict[str, Any]:
    """Start a collector on what a killed one left on its disk, and return what it stores and keeps."""
    site = Running(restored(root, over=COLLECTOR))
    before = files_under(root)
    with running(site) as one:
        wait_for(lambda: list(site.segments.glob("*/*/*/*.manifest.json")), what="a manifest")
        assert one.stop() == 0
    names = {
        "one-[0-9a-f]{16}[.]m": "one-ID.m",
        "log-[0-9]+[.]txt": "log.txt",
    }
    mask = Mask(root, shuffled=("store/*",), names=names)
    files = described_tree(root, mask, before)
    files.pop("log.txt")
    return {"collector": files}


def tools(root: Path) -> dict[str, Any]:
    """Return what commands print that plan, look or describe, and the tables that they write."""
    site, out = restored(root / "site", over=AFTER), root / "out"
    out.mkdir()
    mask = Mask(
        root, keys=("*.seconds",), prose=(*PROSE, "*.sentences.*", "sentences.*", "reason", "says.*"), since=None
    )
    ledger, config = ("--ledger", site / "ledger.db"), ("--config", site / "deployment.toml")
    commands: dict[str, tuple[object, ...]] = {
        "keys list": ("keys", "list", "--keys", site / "keys"),
        "signing keys list": ("keys", "list", "--keys", site / "signing"),
        "plan": ("plan", "--epsilon", 1, "--dictionary-size", 100, "--reports", 10000, "--mechanism", "grr"),
        "privacy": ("privacy", "--epsilon", 1, "--reports", 10000, "--delta", 1e-8, "--mechanism", "grr",
                    "--dictionary-size", 100),
        "privacy of a campaign": ("privacy", "--campaign", site / "campaigns/words/words.json", "--reports", 10000),
        "privacy of discovery": ("privacy", "--discovery", "--epsilon", 1, "--delta", 1e-8),
        "ask item": ("ask", "item", *config, "--campaign", "words", "--out", out / "items.csv"),
        "export": ("ledger", "export", *ledger, "--out", out / "charges.json"),
        "export table": ("ledger", "export", *ledger, "--out", out / "charges.csv"),
    }  # fmt: skip
    printed = {name: _printed(mask, *arguments) for name, arguments in commands.items()}
    return {"tools-printed": printed, "tools-files": described_tree(out, mask, {})}
