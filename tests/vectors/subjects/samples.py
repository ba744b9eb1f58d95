"""An installation's id, a layer and a sample of its buckets: the installation's bucket, and whether it is asked."""

from __future__ import annotations

from typing import Any

from hushcount.campaigns.parts import BUCKETS, SamplePart
from hushcount.sampling import bucket_of
from tests.vectors.subjects.script import octets

_LAYERS = ("a", "settings-2026", "vectors.sample", "a" * 61, "b" * 62, "c" * 63, "d" * 64)
"""With ids of 32 letters, texts of all lengths modulo 4."""
_RANGES = (((0, 5_000),), ((0, 1), (2_500, 7_500), (9_999, BUCKETS)))


def data() -> dict[str, Any]:
    """Return the file's content."""
    accept: list[dict[str, Any]] = []
    refuse: list[dict[str, Any]] = []
    for number in range(2):
        id_ = octets(16, f"installation {number}").hex()
        for layer in _LAYERS:
            bucket = bucket_of(id_, layer)
            # The last ones begin and end at the bucket itself.
            for ranges in (*_RANGES, ((bucket, bucket + 1),), ((0, bucket),) if bucket else _RANGES[0]):
                asked = SamplePart(layer=layer, buckets=ranges).has(bucket)
                entry = {"id": id_, "layer": layer, "buckets": [[*span] for span in ranges]}
                if asked:
                    accept.append({**entry, "bucket": bucket})
                else:
                    refuse.append({**entry, "reason": "not_asked"})
    return {
        "subject": "samples",
        "about": "An installation's id, a layer and ranges of its buckets: the bucket, or that the client is not asked",
        "accept": accept,
        "refuse": refuse,
    }
