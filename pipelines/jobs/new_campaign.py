"""Make a campaign: plan the parameters that are not fixed, draw a new seed and hash key, and validate the campaign."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from hushcount.campaigns.axes import AxesPart
from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.dictionary import Dictionary, in_random_order, read_dictionary
from hushcount.campaigns.parts import (
    COLLECTOR,
    USUAL_VALUE_BYTES,
    NoisePart,
    NumberPart,
    PassesPart,
    SamplePart,
    UrlPart,
    WindowsPart,
    portable,
)
from hushcount.errors import UsageError
from hushcount.formats.models import explain
from hushcount.formats.whole_files import write_new
from hushcount.items import MOST_ITEM_BYTES
from hushcount.maths.objectives import Objective
from hushcount.oracles.catalogue import plan
from hushcount.oracles.parameters import Parameters
from hushcount.randomness import SystemWords, hex_seed
from keys.directories import PublicFile
from pipelines.files.item_files import read_listed
from pipelines.jobs.url_parts import addresses


def create_campaign(  # noqa: PLR0913  # each is a part of the campaign file
    id: str,
    keys: PublicFile,
    directory: Path,
    *,
    mechanism: str | None = None,
    epsilon: float | None = None,
    noise: NoisePart | None = None,
    dictionary: Path | Dictionary | None = None,
    number: NumberPart | None = None,
    url: UrlPart | None = None,
    axes: AxesPart | None = None,
    settings: Parameters | None = None,
    objective: Objective | None = None,
    shuffle: Mapping[str, Any] | None = None,
    discovery: Mapping[str, Any] | None = None,
    memory: int = 0,
    sample: SamplePart | None = None,
    collectors: tuple[str, ...] = (COLLECTOR,),
    passes: PassesPart | None = None,
    windows: WindowsPart | None = None,
    epoch: int = 1,
    previous: bytes | None = None,
) -> Campaign:
    """Return a validated campaign with new public random values: a pool's seed and the key of the discovery hash.

    Args:
        keys: the parties' public keys.
        directory: directory of the campaign file and its dictionary.
        mechanism: a name of the catalogue, or None with noise and for discovery only.
        epsilon: local budget of one report; given if and only if a mechanism is given.
        noise: of the mixes, in place of a mechanism.
        dictionary: known items, or a file of them (`read_listed`); None for the open domain. The items are written in
            random order to a file of the campaign's own, beside the campaign file.
        number: values are numbers, and the known items are the names of their bins; without a dictionary.
        url: values are addresses, and the known items are too, in any spelling.
        axes: what clients are broken down by; None: nothing.
        settings: fixed parameters of the mechanism; all other parameters are planned.
        objective: what the plan minimises; the l2 loss by default.
        shuffle: cap, minimum_batch, delta.
        discovery: epsilon, delta and further settings of discovery; None: no discovery. If the setting hash is
            "oblivious", `keys` must hold the evaluator's key of this epoch.
        memory: number of different values for which a client remembers its answers, to repeat them in an epoch; 0:
            clients have no memory.
        sample: which clients are asked; None: all.
        collectors: names of the collectors that take reports.
        passes: keys by which an issuer signs client tokens; None: clients make their own.
        windows: when windows begin; None: they have a length that the app states.
        epoch: number of the epoch.
        previous: head of the log of earlier epochs; None for the first epoch.

    Raises:
        UsageError: a value is missing or out of range; the message lists all errors, each with its field.
    """
    if (mechanism is None) != (epsilon is None):
        raise UsageError("mechanism and epsilon must be given together, or neither for discovery only")
    if axes is not None and axes.private.axes and number is not None and number.mean:
        raise UsageError("a mean has no private axes: give --bins in place of --mean, or --public-by in place of --by")
    most = MOST_ITEM_BYTES if discovery is None else discovery.get("max_value_bytes", USUAL_VALUE_BYTES)
    known = _known(dictionary, number, url, most)
    file = dictionary if isinstance(dictionary, Path) else None
    oblivious = discovery is not None and discovery.get("hash") == "oblivious"
    data: dict[str, Any] = {
        "id": id,
        "epoch": epoch,
        "keys": _keys(keys, oblivious),
        "shuffle": shuffle or {},
        "noise": noise,
        "collectors": list(collectors),
        "passes": passes,
        "windows": windows,
        "sample": sample,
        "number": number,
        "url": url,
        "axes": axes,
        "previous": None if previous is None else previous.hex(),
        **({"memory": True, "memory_values": memory} if memory else {}),
    }
    try:
        if mechanism is not None and epsilon is not None:
            strata = 1 if axes is None else len(axes.private)
            domain = None if known is None else (len(known.items) + 1) * strata
            fresh = hex_seed(SystemWords())
            parameters = plan(mechanism, epsilon, domain, settings or {}, objective or Objective(), fresh)
            data["mechanism"] = {"name": mechanism, "epsilon": epsilon, "parameters": portable(parameters)}
        if known is not None:
            name = f"{id}-{epoch:06d}.dictionary.txt{'.gz' if file is not None and file.suffix == '.gz' else ''}"
            data["dictionary"] = {"path": name, "items": len(known.items), "digest": known.digest}
        if discovery is not None:
            data["discovery"] = {**({} if oblivious else {"hash_key": hex_seed(SystemWords())}), **discovery}
        campaign = Campaign.model_validate(data)
    except ValidationError as error:
        raise UsageError(f"this campaign would be invalid: {explain(error)}") from None
    except ValueError as error:
        raise UsageError(str(error)) from None
    if known is not None and campaign.dictionary is not None:
        _put_beside(file, directory / campaign.dictionary.path, known)
    return campaign


def _known(
    dictionary: Path | Dictionary | None, number: NumberPart | None, url: UrlPart | None, most: int
) -> Dictionary | None:
    """Return the known items in random order."""
    if number is not None:
        dictionary = Dictionary(number.items)
    elif isinstance(dictionary, Path):
        dictionary = read_listed(dictionary)
    if dictionary is not None and url is not None:
        dictionary = addresses(dictionary, url, most)
    return None if dictionary is None else Dictionary(in_random_order(dictionary.items))


def _keys(keys: PublicFile, oblivious: bool) -> dict[str, Any]:
    """Return the campaign's keys, without those of an evaluator that serves only other campaigns."""
    if not keys.analyzer:
        raise UsageError("keys hold no key of the analyzer: give the analyzer's key directory too")
    if oblivious and not keys.evaluator:
        raise UsageError("an oblivious campaign needs a key of the evaluator: hushcount keys new --role evaluator")
    return keys.model_dump(mode="json", exclude=None if oblivious else {"evaluator"})


def _put_beside(source: Path | None, target: Path, known: Dictionary) -> None:
    """Write the campaign's own file of items, if it does not exist; raise UsageError if it exists with other items."""
    lines = "".join(f"{item}\n" for item in known.items).encode()
    try:
        if not target.exists():
            write_new(target, gzip.compress(lines, mtime=0) if target.suffix == ".gz" else lines, 0o644)
    except OSError as error:
        raise UsageError(f"cannot write the campaign's dictionary {target}: {error.strerror}") from None
    if read_dictionary(target) == known:
        return
    if source is not None and source.resolve() == target.resolve():
        raise UsageError(f"dictionary {source} has the name of the campaign's own dictionary: rename your file")
    raise UsageError(f"{target} exists and has other items than this campaign: remove it if no campaign uses it")
