"""Where the files of an output lie: beside its summary, or in the folder of the run that wrote it (docs/adr/0024)."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, StringConstraints

from hushcount.formats.reading import validated
from pipelines.files import storage
from pipelines.outputs.staging import SUMMARY
from pipelines.outputs.summary import RUN_FOLDER, HopSummary


class _Placed(BaseModel):
    """Of a summary, which another party may have written, where its files are."""

    folder: Annotated[str, StringConstraints(pattern=rf"^{RUN_FOLDER}$")] | None = None


def folder_of(out: str, summary: HopSummary | None = None) -> str:
    """Return the directory in which the files of an output lie.

    Args:
        out: the output.
        summary: its summary, where it was read; else it is read here. An output without one has its files in it.

    Raises:
        UsageError: the summary cannot be read, or names what is no folder of a run.
    """
    mark = storage.join(out, SUMMARY)
    if summary is None:
        data = storage.read_json(mark) if storage.exists(mark) else {}
        folder = validated(_Placed, data, mark, "names no folder of a run").folder
    else:
        folder = summary.folder
    return out if folder is None else storage.join(out, folder)


def file_of(path: str) -> str:
    """Return where a file lies that is named as if it lay beside the summary of its output."""
    out, _, name = path.rpartition("/")
    return storage.join(folder_of(out), name) if out and not storage.exists(path) else path
