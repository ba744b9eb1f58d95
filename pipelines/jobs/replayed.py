"""Dead letters that were replayed: into which output, so that no report is counted in two of them.

Who replays writes a claim beside the letters, then looks for others' claims, and takes its own back if there is one. Of
two at once at most one goes on, in a store too, where nothing arbitrates between two writers of one object.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from hushcount.errors import UsageError
from hushcount.formats.models import Part
from hushcount.formats.reading import validated
from pipelines.files import storage

_ENDING = ".replayed.json"


class _Claim(Part):
    out: str


def claim(folder: str, fingerprint: bytes, letters: bytes, out: str) -> None:
    """Note that these letters are replayed into `out`, and into nothing else; again into the same changes nothing.

    Args:
        folder: where the letters lie.
        fingerprint: of the campaign file that they are replayed with; those of another one are other reports.
        letters: all of them, distinct and in order.
        out: the output directory.

    Raises:
        UsageError: they were replayed into another output, or somebody else is about to; it is named.
    """
    place = out.rstrip("/") if storage.is_remote(out) else str(Path(out).resolve())
    which = hashlib.blake2b(letters, key=fingerprint, digest_size=16, person=b"replayed").hexdigest()
    mine = f"{which}-{hashlib.blake2b(place.encode(), digest_size=8).hexdigest()}{_ENDING}"
    before = storage.exists(storage.join(folder, mine))
    if not before:
        storage.write_json(storage.join(folder, mine), _Claim(out=place).model_dump())
    names = (path.rpartition("/")[2] for path, _ in storage.list_files(folder, _ENDING))
    others = [name for name in names if name.startswith(f"{which}-") and name != mine]
    if not others:
        return
    if not before:
        storage.remove(storage.join(folder, mine))
    path = storage.join(folder, others[0])
    if not storage.exists(path):
        raise UsageError("somebody else just began to replay these dead letters: see into what, and try again")
    other = validated(_Claim, storage.read_json(path), path, "is no note of a replay").out
    raise UsageError(
        f"these dead letters were replayed into {other}, and would be counted twice: read that, or replay them into it "
        "again with --overwrite"
    )
