"""Where the files of an output lie: beside its summary, or in the folder of the run that wrote it (docs/adr/0024)."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, StringConstraints

from hushcount.formats.reading import validated
from pipelines.files import storage
from pipelines.outputs.staging import SUMMARY
from pipelines.outputs.summary import RUN_FOLDER, HopSummary


class _Placed(BaseModel):
    folder: Annotated[str, StringConstraints(pattern=rf"^{RUN_FOLDER}$")] | None = None


def folder_of(out: str, summary: HopSummary | None = None) -> str:
    """Return the directory of an output's files, by its summary, which is read here if it is not given.

    An output without a summary has its files in it.

    Raises:
        UsageError: the summary cannot be read, or what it names is no folder of a run.
    """
    mark = storage.join(out, SUMMARY)
    if summary is None:
        data = storage.read_json(mark) if storage.exists(mark) else {}
        folder = validated(_Placed, data, mark, "names no folder of a run").folder
    else:
        folder = summary.folder
    return out if folder is None else storage.join(out, folder)


def file_of(path: str) -> str:
    """Return the path of a file that the user names as if it were beside the summary of its output."""
    out, _, name = path.rpartition("/")
    return storage.join(folder_of(out), name) if out and not storage.exists(path) else path
