"""The hops of a batch: their order, the party, input and output of each hop, and the outputs that exist."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, get_args

from hushcount import results
from hushcount.campaigns.campaign import Campaign, Stream
from hushcount.collection.epochs import folder_name
from pipelines.deployment.settings import Deployment, Party
from pipelines.files import storage
from pipelines.handover.paths import Batch
from pipelines.outputs.staging import SUMMARY

if TYPE_CHECKING:
    from keys.roles import SigningRole


HopName = Literal["shuffle", "release", "discover", "mix", "analyze"]


@dataclass(frozen=True)
class Hop:
    """One party's step on a batch.

    Attributes:
        stream: the stream that a batch must have for the hop to run; None: any stream.
        signer: role of the key that signs the output for another party; None: no other party reads the output.
    """

    name: HopName
    party: Party
    folder: str
    stream: Stream | None = None
    signer: SigningRole | None = None


_HOPS = (
    Hop("shuffle", "shuffler", "shuffled", signer="shuffler"),
    Hop("release", "aux-server", "released", stream="discovery", signer="aux_signer"),
    Hop("discover", "analyzer", "found", stream="discovery"),
    Hop("mix", "aux-server", "mixed", stream="reports", signer="aux_signer"),
    Hop("analyze", "analyzer", "results", stream="reports"),
)
CHAIN: Mapping[HopName, Hop] = {hop.name: hop for hop in _HOPS}
"""The hops by name, in the order in which they run."""
HANDED_ON: Mapping[HopName, Hop] = {hop.name: hop for hop in _HOPS if hop.signer}
"""The hops whose output another party reads; retention deletes these outputs."""
CHARGING: frozenset[HopName] = frozenset(("release", "discover", "mix", "analyze"))
"""The hops that charge the ledger."""


def stream_hops(stream: Stream, noise: bool) -> tuple[HopName, ...]:
    """Return the hops that a stream passes, in their order; each reads what the one before wrote.

    Args:
        noise: whether the campaign has noise of the mixes.
    """
    if stream == "discovery":
        return "shuffle", "release", "discover"
    return ("shuffle", "mix", "analyze") if noise else ("shuffle", "analyze")


def path_of(stream: Stream, noise: bool) -> tuple[HopName, ...]:
    """Return the hops that count a stream's reports: all but discover, which counts released values."""
    return tuple(hop for hop in stream_hops(stream, noise) if hop != "discover")


def input_of(hop: HopName, noise: bool) -> HopName | None:
    """Return the hop that wrote a hop's input; None: collectors wrote it. `noise` is as in `stream_hops`."""
    steps = (step for stream in get_args(Stream) for step in pairwise(stream_hops(stream, noise)))
    return next((before for before, after in steps if after == hop), None)


def readers_of(hop: str, streams: Container[Stream], noise: bool) -> list[Hop]:
    """Return the hops that read a hop's output, if it has these streams; `noise` is as in `stream_hops`."""
    return [one for one in _HOPS if one.stream in streams and input_of(one.name, noise) == hop]


def hop_names(campaign: Campaign, parties: Container[Party]) -> list[HopName]:
    """Return the hops that these parties run on a campaign's batches, in the order of the hops."""
    wanted = {hop for stream in campaign.streams for hop in stream_hops(stream, campaign.noise is not None)}
    return [hop.name for hop in _HOPS if hop.name in wanted and hop.party in parties]


def output_of(deployment: Deployment, hop: HopName, batch: Batch) -> str:
    """Return the directory of a hop's output for a batch."""
    return deployment.folder(CHAIN[hop].folder, batch.campaign, batch.name)


def table_of(deployment: Deployment, batch: Batch) -> str:
    """Return the path of the table with a batch's result in the data set."""
    return deployment.folder(results.FOLDER, results.file_name(batch.campaign, batch.window, folder_name(*batch.file)))


def outputs(deployment: Deployment, folder: str, campaign: str) -> Iterator[tuple[Batch, str]]:
    """Yield each batch that has an output in a folder, and the path of the output's summary, sorted by batch."""
    for path, _ in storage.list_tree(deployment.folder(folder, campaign), f"*/{SUMMARY}"):
        batch = Batch.named(campaign, path.split("/")[-2])
        if batch is not None:
            yield batch, path


def all_outputs(deployment: Deployment, folder: str) -> dict[str, list[Batch]]:
    """Return, for each campaign, the batches that have an output in a folder; the folder is listed only once."""
    found: dict[str, list[Batch]] = defaultdict(list)
    for path, _ in storage.list_tree(deployment.folder(folder), f"*/*/{SUMMARY}"):
        campaign, name = path.split("/")[-3:-1]
        if (batch := Batch.named(campaign, name)) is not None:
            found[campaign].append(batch)
    return found
