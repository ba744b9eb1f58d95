"""An object store for Beam's FileSystems, `stub://`: like gs:// and s3:// it has objects only, and no directories.

An object exists, a "directory" never does; deleting a name without a slash at its end deletes that object alone; and
nothing is renamed but one object at a time.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from threading import Lock
from typing import Any, ClassVar

from apache_beam.io.filesystem import BeamIOError, CompressionTypes, FileMetadata, FileSystem

from pipelines.files import stores

PREFIX = "stub://"


class _Upload(io.BytesIO):
    """An object that is there when it is closed, and not before."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path

    def close(self) -> None:
        if not self.closed:
            StubStore.put(self._path, self.getvalue())
        super().close()


class StubStore(FileSystem):  # type: ignore[misc]  # apache_beam ships no types
    """The store. Its objects and the order in which they got their final names are the class's own."""

    objects: ClassVar[dict[str, bytes]] = {}
    named: ClassVar[list[str]] = []
    """Every name that an object was put or renamed to, in order."""
    times: ClassVar[dict[str, float]] = {}
    """When each object was put or renamed to its name, by the store's clock."""
    clock: ClassVar[Callable[[], float]] = time.time
    """The store's clock: seconds since 1970. As long as a test sets none, the store does not tell the time."""
    full: ClassVar[str] = ""
    """Names that contain this cannot be written; empty: all can."""
    lock: ClassVar[Lock] = Lock()

    @classmethod
    def clear(cls) -> None:
        cls.objects.clear()
        cls.named.clear()
        cls.times.clear()
        cls.full, cls.clock = "", time.time

    @classmethod
    def put(cls, path: str, content: bytes) -> None:
        with cls.lock:
            cls._put(path, content)

    @classmethod
    def _put(cls, path: str, content: bytes) -> None:
        if cls.full and cls.full in path:
            raise OSError(28, "No space left on device", path)
        cls.objects[path] = content
        cls.named.append(path)
        cls.times[path] = cls.clock()

    @classmethod
    def put_absent(cls, path: str, content: bytes) -> bool:
        with cls.lock:
            if path in cls.objects:
                return False
            cls._put(path, content)
            return True

    @classmethod
    def date(cls, path: str) -> datetime | None:
        del path
        return None if cls.clock is time.time else datetime.fromtimestamp(cls.clock(), timezone.utc)

    @classmethod
    def scheme(cls) -> str:
        return "stub"

    def join(self, basepath: str, *paths: str) -> str:
        assert basepath.startswith(PREFIX)
        return "/".join([basepath.rstrip("/"), *(path.strip("/") for path in paths)])

    def split(self, path: str) -> tuple[str, str]:
        head, _, tail = path.rpartition("/")
        return head, tail

    def mkdirs(self, path: str) -> None:
        raise AssertionError(f"an object store has no directories: {path}")

    def has_dirs(self) -> bool:
        return False

    def _list(self, dir_or_prefix: str) -> Iterator[FileMetadata]:
        with self.lock:
            found = [self.metadata(path) for path in self.objects if path.startswith(dir_or_prefix)]
        yield from found

    def create(self, path: str, mime_type: str = "", compression_type: Any = CompressionTypes.AUTO) -> io.BytesIO:
        assert compression_type == CompressionTypes.UNCOMPRESSED
        return _Upload(path)

    def open(self, path: str, mime_type: str = "", compression_type: Any = CompressionTypes.AUTO) -> io.BytesIO:
        assert compression_type == CompressionTypes.UNCOMPRESSED
        if path not in self.objects:
            raise BeamIOError("Open operation failed", {path: FileNotFoundError(2, "No such object")})
        return io.BytesIO(self.objects[path])

    def copy(self, source_file_names: list[str], destination_file_names: list[str]) -> None:
        for source, destination in zip(source_file_names, destination_file_names, strict=True):
            self.put(destination, self.objects[source])

    def rename(self, source_file_names: list[str], destination_file_names: list[str]) -> None:
        self.copy(source_file_names, destination_file_names)
        self.delete(source_file_names)

    def exists(self, path: str) -> bool:
        return path in self.objects

    def size(self, path: str) -> int:
        return len(self.objects[path])

    def last_updated(self, path: str) -> float:
        return self.times[path]

    def checksum(self, path: str) -> str:
        return str(len(self.objects[path]))

    def metadata(self, path: str) -> FileMetadata:
        return FileMetadata(path, len(self.objects[path]), self.times.get(path, 0.0))

    def delete(self, paths: list[str]) -> None:
        with self.lock:
            for path in paths:
                doomed = [name for name in self.objects if name.startswith(path)] if path.endswith("/") else [path]
                for name in doomed:
                    self.objects.pop(name, None)


stores.PUTS["stub"] = StubStore.put_absent
stores.DATES["stub"] = StubStore.date
