"""Names of batches and paths of windows and segments; each name or path identifies its content."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hushcount.collection.epochs import folder_name
from hushcount.collection.windows import is_window

BATCH_NAME = r"(?P<window>[0-9]{8}T[0-9]{6}Z)-(?P<epoch>[0-9]{6,})-(?P<fingerprint>[0-9a-f]{16})"
"""WINDOW-EPOCH-FINGERPRINT."""
_SEGMENT_NAMES = 5


@dataclass(frozen=True, order=True)
class Batch:
    """The segments of one campaign file, of one or several streams, that are shuffled together.

    Attributes:
        window: name of the window at the end of which the batch was made.
        epoch: epoch of the campaign file.
        fingerprint: first 16 digits of the campaign file's fingerprint.
    """

    campaign: str
    window: str
    epoch: int
    fingerprint: str

    @property
    def file(self) -> tuple[int, str]:
        """Epoch and fingerprint, which identify the campaign file."""
        return self.epoch, self.fingerprint

    @property
    def name(self) -> str:
        """WINDOW-EPOCH-FINGERPRINT, which is also the name of the batch's folders."""
        return f"{self.window}-{folder_name(*self.file)}"

    @classmethod
    def named(cls, campaign: str, name: str) -> Batch | None:
        """Return the batch with this name; None if it is no batch's name, as the name of an operator's own folder."""
        match = re.fullmatch(BATCH_NAME, name)
        if match is None or not is_window(match["window"]):
            return None
        return cls(campaign, match["window"], int(match["epoch"]), match["fingerprint"])


@dataclass(frozen=True, order=True)
class WindowPath:
    """CAMPAIGN/EPOCH-FINGERPRINT/WINDOW in the folder of segments: a folder with manifests and a folder per stream.

    Attributes:
        file: EPOCH-FINGERPRINT of the campaign file.
    """

    campaign: str
    file: str
    window: str

    @classmethod
    def of(cls, path: str) -> WindowPath:
        """Return the window of a manifest's or segment's `path`, which is relative to the folder of segments."""
        campaign, file, window, _ = path.split("/", 3)
        return cls(campaign, file, window)

    def __str__(self) -> str:
        return f"{self.campaign}/{self.file}/{self.window}"


@dataclass(frozen=True)
class SegmentPath:
    """CAMPAIGN/EPOCH-FINGERPRINT/WINDOW/STREAM/NAME in the folder of segments, whose writers can invent any such path.

    Attributes:
        file: EPOCH-FINGERPRINT of the campaign file.
    """

    campaign: str
    file: str
    window: str
    stream: str
    name: str

    @classmethod
    def parse(cls, path: str) -> SegmentPath | None:
        """Return the parts of a segment's `path` below the folder of segments; None if the file is no segment."""
        names = path.split("/")
        return cls(*names) if len(names) == _SEGMENT_NAMES and path.endswith(".blocks") else None

    def __str__(self) -> str:
        return f"{self.campaign}/{self.file}/{self.window}/{self.stream}/{self.name}"
