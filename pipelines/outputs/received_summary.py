"""Read a summary.json that another party may have written, and find the files of the output (docs/adr/0024)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, RootModel, StringConstraints

from hushcount.errors import UsageError
from hushcount.formats.models import Hex32
from hushcount.formats.reading import parse_object, validated
from hushcount.senders import told_in
from pipelines.files import storage
from pipelines.outputs.counts import HopCounts
from pipelines.outputs.staging import SUMMARY
from pipelines.outputs.summary import RUN_FOLDER, HopSummary, digest_of_json

_READ = (
    "hop", "received", "accepted", "rejected", "streams", "campaign", "epoch", "fingerprint", "upstream", "made_from",
    "left_out", "released", "bins", "batch", "window", "folder", "files", "opening", "shuffled",
    "atoms", "dummies",
)  # fmt: skip
"""The fields that are read from a summary; a summary may have further fields."""
COUNTED = ("hop", "received", "accepted", "rejected", "streams", "opening", "dummies")
"""The fields of a summary that are counts."""


def _checked(counts: HopCounts) -> HopCounts:
    if counts.hop in ("release", "discover") and "discovery" not in counts.streams:
        raise ValueError("streams.discovery is missing")
    return counts


def _whole(summary: HopSummary) -> HopSummary:
    before = [_checked(hop).hop for hop in (*summary.upstream, summary)]
    if summary.hop == "release" and summary.released is None:
        raise ValueError("released is missing")
    if summary.hop == "discover" and (summary.bins is None or "release" not in before):
        raise ValueError("bins, or the release before them, is missing")
    strata = [stratum for atom in summary.atoms for stratum in atom.strata]
    if len(set(strata)) < len(strata):
        raise ValueError("atoms: a stratum is in two of them")
    for listed in (summary.files or {}).values():
        if len({file.name for file in listed}) < len(listed):
            raise ValueError("files names a file twice in one folder")
    return summary


_CountsPart = RootModel[Annotated[HopCounts, AfterValidator(_checked)]]
_SummaryFile = RootModel[Annotated[HopSummary, AfterValidator(_whole)]]


def read_summary(path: str) -> HopSummary:
    """Read a summary; raises UsageError if the file is missing or invalid, or the counts in it do not add up."""
    return _read(storage.read_json(path), path)


def parse_summary(raw: bytes, path: str) -> HopSummary:
    """Return the summary in a file's bytes; raises as `read_summary`."""
    return _read(parse_object(raw, path), path)


def counts_in(summary: Mapping[str, Any], name: str) -> HopCounts:
    """Return the counts in a summary's fields; FormatError, which begins with `name`, if the counts do not add up."""
    given = {field: summary[field] for field in COUNTED if field in summary}
    return validated(_CountsPart, given, name, "does not say what a hop counted").root


def made_from_in(summary: Mapping[str, Any], name: str) -> str | None:
    """Return the field `made_from` of a summary, the digest of the summary of the hop before; raises as `counts_in`."""
    return validated(
        _MadeFrom, {"made_from": summary.get("made_from")}, name, "does not say what it was made from"
    ).made_from


def _read(data: Mapping[str, Any], path: str) -> HopSummary:
    given = {name: data[name] for name in _READ if name in data}
    derived = {"senders": told_in(data), "charged": _charged(data), "read_as": digest_of_json(data)}
    return validated(_SummaryFile, given | derived, path, "is not the summary of a hop").root


def _charged(data: Mapping[str, Any]) -> str | None:
    """Return the manifest under which the auxiliary server charged its release; None: the summary has no charge."""
    ledger = data.get("ledger") if data.get("hop") in ("release", "mix") else None
    charged = ledger.get("charged") if isinstance(ledger, dict) else None
    manifest = charged.get("manifest") if isinstance(charged, dict) else None
    return manifest if isinstance(manifest, str) and re.fullmatch("[0-9a-f]{64}", manifest) else None


class _MadeFrom(BaseModel):
    made_from: Hex32 | None


class _Placed(BaseModel):
    folder: Annotated[str, StringConstraints(pattern=rf"^{RUN_FOLDER}$")] | None = None
    batch: str | None = None


def folder_of(out: str, summary: HopSummary | None = None, batch: str | None = None) -> str:
    """Return the directory with an output's files, which the output's summary names.

    If an output has no summary, or the summary names no folder, the files are in `out` itself.

    Args:
        summary: the output's summary; None: read it from `out`.
        batch: the batch that the summary must name, if the summary is read here and names a batch; None: any batch.

    Raises:
        UsageError: the summary cannot be read, names another batch, or its `folder` is not the name of a run's folder.
    """
    mark = storage.join(out, SUMMARY)
    if summary is None:
        data = storage.read_json(mark) if storage.exists(mark) else {}
        placed = validated(_Placed, data, mark, "does not name the folder of a run")
        require_batch(out, placed.batch, batch)
        folder = placed.folder
    else:
        folder = summary.folder
    return out if folder is None else storage.join(out, folder)


def require_batch(out: str, said: str | None, batch: str | None) -> None:
    """Raise UsageError if an output names another batch (`said`) than `batch`; None: no batch is named or required."""
    if batch is not None and said not in (None, batch):
        raise UsageError(f"{out} holds the output for batch {said!a}: it lies in the wrong place; restore it")


def file_of(path: str) -> str:
    """Return the real path of an output's file; users give a path as if the file lay in the summary's directory."""
    out, _, name = path.rpartition("/")
    return storage.join(folder_of(out), name) if out and not storage.exists(path) else path
