"""When a run of the parties here last looked, as a file beside their lease says.

A log cannot say this, because a run that finds nothing due puts no entry there.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from hushcount.formats.models import Part
from hushcount.formats.reading import SETTINGS_BYTES, parse_model
from pipelines.deployment.settings import Deployment
from pipelines.files import storage


class Look(Part):
    """The content of the file. `at`: the moment that the last run worked by; every window that ended by then was seen.

    No decision depends on this file, and it is always safe to delete.
    """

    format: Literal[1] = 1
    at: datetime


def beside(deployment: Deployment, kind: str) -> str:
    """Return the path of a file of all parties here together, beside their logs."""
    return deployment.folder("log", f"{'+'.join(deployment.file.parties)}.{kind}.json")


def write_look(deployment: Deployment, at: datetime) -> None:
    """Say that a run has looked; StorageError or OSError if the store cannot be written."""
    storage.write_whole(beside(deployment, "look"), [Look(at=at).model_dump_json().encode()])


def last_look(deployment: Deployment) -> datetime | None:
    """Return when a run last looked; None: never, by this store. FormatError if the file is damaged."""
    path = beside(deployment, "look")
    data = storage.read_if_there(path, SETTINGS_BYTES)
    return None if data is None else parse_model(Look, data, path).at
