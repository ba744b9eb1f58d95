"""The auxiliary server's view in the demo: the hash and the number of reports of each bin."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from aux_server.bins import Bins, bins_of
from aux_server.open_pairs import tagged_pairs
from hushcount.campaigns.campaign import Campaign
from hushcount.randomness import SystemWords
from hushcount.wire.tags import tag_keys
from keys.directories import campaign_key
from keys.opening import Opener
from pipelines.files import storage
from pipelines.files.block_files import find_files, read_records
from pipelines.outputs.counts import SEALED


def bins_seen(campaign: Campaign, keys: Path, shuffled: str) -> Bins:
    """Open the shuffled discovery reports with the auxiliary server's key, and count equal pairs, as its job does.

    Privacy: for the demo only, whose values are public; the job releases no bin that the keep rule does not select.
    """
    form, key = campaign.discovery_format, campaign_key(keys, "aux_server", campaign.keys.aux_server)
    files = find_files(storage.join(shuffled, "discovery"), SEALED["discovery"])
    opener = Opener(key.read(), form.binding, form.sealed_bytes, 0)
    tags = tag_keys(form.sealed_bytes, SystemWords())
    tagged, _ = opener.open_block(b"".join(map(read_records, files)), partial(tagged_pairs, tags))
    return bins_of(tagged.tobytes(), form.pair_bytes)
