"""hushcount campaign: make, show and redact campaign files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Option

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.dictionary import Dictionary
from hushcount.campaigns.parts import (
    COLLECTOR,
    DiscoveryPart,
    NoisePart,
    NumberPart,
    PassesPart,
    SamplePart,
    ShufflePart,
    WindowsPart,
)
from hushcount.clock import MACHINE
from hushcount.errors import UsageError
from hushcount.formats.reading import validated
from hushcount.formats.whole_files import write_over
from hushcount.oracles.catalogue import CATALOGUE
from hushcount.passes.pass_keys import PassKeys, keys_of, passes_beside, read_pass_keys
from hushcount.privacy.queries import epsilon_notes
from hushcount.window_starts import Unit
from keys import directories
from keys.listing import next_key
from pipelines.console import options
from pipelines.console.answer import Answer, note, show_json
from pipelines.console.tables import facts
from pipelines.deployment.listed_windows import windows_of
from pipelines.files.item_files import read_listed, table_note
from pipelines.jobs.axis_parts import axes_part
from pipelines.jobs.new_campaign import create_campaign
from pipelines.jobs.number_bins import MEAN, number_part
from pipelines.jobs.url_parts import FORMS, url_part

if TYPE_CHECKING:
    from pipelines.deployment.settings import Deployment

FileOption = Annotated[Path, Option("--out", help="Campaign file to write, .json.")]


def new_campaign(
    keys: Annotated[list[Path], Option(help="Directory with a party's public.json; give it once for each party.")],
    out: FileOption,
    id: Annotated[
        str | None,
        Option(help="Id of the campaign: lower case letters, digits, dot, dash.", show_default="that of --after"),
    ] = None,
    mechanism: Annotated[str | None, Option(help=f"{', '.join(CATALOGUE)}; leave it out for discovery only.")] = None,
    noise: Annotated[
        bool,
        Option(
            "--noise",
            help="In place of a mechanism: reports are sealed, not randomised, and both the shuffler and the auxiliary "
            "server add dummies. --epsilon and --delta are then of a client's reports in a window.",
        ),
    ] = False,
    window: Annotated[
        str | None, Option(help="With --noise: length of a window, as 1h or 1d.", show_default="that of --config")
    ] = None,
    epsilon: Annotated[float | None, Option(help="Local budget of one report.")] = None,
    dictionary: Annotated[
        Path | None,
        Option(help="File of known items, one a line, or a .csv with the column item; it is copied."),
    ] = None,
    open_domain: Annotated[bool, Option("--open-domain", help="Any string is an item.")] = False,
    number: options.Number = None,
    bins: options.Bins = None,
    unit: options.Unit = None,
    mean: options.Mean = False,
    count: options.Count = None,
    url: Annotated[
        str | None, Option(help=f"Values are addresses; a client reports of each the {FORMS}, N segments of the path.")
    ] = None,
    by: options.Axes = None,
    public_by: options.PublicAxes = None,
    flag: Annotated[str | None, Option(help="Values are yes, by this name, or anything else for no.")] = None,
    set_: options.Settings = None,
    cap: Annotated[int | None, Option(help="Most reports of one client that count.", show_default="1")] = None,
    min_batch: Annotated[
        int | None,
        Option(help="Fewest reports in a release.", max=options.MOST_REPORTS, show_default="1000, with --noise 1"),
    ] = None,
    delta: Annotated[
        float | None, Option(help="Delta of the shuffled guarantee of one report.", show_default="1e-8")
    ] = None,
    memory: Annotated[
        bool | None,
        Option("--memory/--no-memory", help="Clients give a value the same answer all epoch.", show_default="no"),
    ] = None,
    memory_values: Annotated[
        int | None, Option(help="With --memory: most values of one client in an epoch; default 1.")
    ] = None,
    sample: Annotated[
        str | None, Option(help="Share of clients that are asked, as 5% or 0.05.", show_default="all")
    ] = None,
    layer: Annotated[
        str | None,
        Option(help="With --sample: campaigns of one layer ask no client together.", show_default="the id"),
    ] = None,
    passes: Annotated[
        Path | None,
        Option(help="Public keys of hushcount keys passes: clients need passes of this issuer.", show_default="none"),
    ] = None,
    epoch: Annotated[
        int | None, Option(help="Number of the epoch; default 1, or one more than that of --after.")
    ] = None,
    after: Annotated[
        Path | None,
        Option(help="Campaign file of the previous epoch: the new file follows it, and takes options you leave out."),
    ] = None,
    begins: options.Begins = None,
    discovery_epsilon: Annotated[float | None, Option(help="Epsilon of discovery; turns discovery on.")] = None,
    discovery_delta: Annotated[float | None, Option(help="Delta of discovery.", show_default="1e-8")] = None,
    discovery_relation: Annotated[str | None, Option(help="replace-one (default) or add-remove.")] = None,
    discovery_rule: Annotated[str | None, Option(help="optimal (default) or laplace.")] = None,
    discovery_counts: Annotated[
        bool | None,
        Option(
            "--discovery-counts/--no-discovery-counts",
            help="Reveal a noisy count with each discovered value.",
            show_default="no",
        ),
    ] = None,
    no_discovery: Annotated[bool, Option("--no-discovery", help="With --after: turns discovery off.")] = False,
    max_value_bytes: Annotated[
        int | None, Option(help="Length of the longest value to discover, in UTF-8 bytes; default 64.")
    ] = None,
    hash_: Annotated[
        Literal["keyed", "oblivious"] | None,
        Option("--hash", help="Hash for discovery: keyed (default), or oblivious, which needs an evaluator's key."),
    ] = None,
    config: Annotated[
        Path | None,
        Option(
            "--config",
            "-c",
            help="Deployment file: its collectors take the reports, the new file lists its windows if they follow a "
            "calendar, and keys and buckets of its campaigns are not used again.",
        ),
    ] = None,
) -> Answer:
    """Use it when you have the keys and a dictionary: clients and parties must all use this file.

    It takes the keys that are active at --begins. hushcount plan helps to choose a mechanism.

    Example: hushcount campaign new --id w --mechanism ais --epsilon 1 --dictionary w.txt --keys keys --out w.json
    """
    from pipelines.deployment.settings import Deployment

    settings, objective = options.parse_settings(set_)
    before = None if after is None else _before(after, id, epoch)
    if is_noisy := noise or (before is not None and before.noise is not None):
        _require_no_mechanism(before, mechanism, set_, mean=mean)
    numbers = number_part(number, bins, _unit(unit, bins, before), count, mean)
    domain = _Domain(dictionary, numbers, flag, open_domain).checked()
    if dictionary is not None and (said := table_note(dictionary, read_listed(dictionary))):
        note(f"warning: {said}")
    if before is not None:
        id = before.id
        memory = before.memory if memory is None else memory
        if before.mechanism is not None:
            mechanism = mechanism or before.mechanism.name
            epsilon = before.mechanism.epsilon if epsilon is None else epsilon
        domain = domain if domain.is_given else _domain(before)
    mechanism = mechanism or (_mechanism_of_mean(epsilon) if mean else None)
    if id is None:
        raise UsageError("give --id NAME, or --after FILE to make a campaign's next epoch")
    if mechanism is not None and not domain.is_given:
        raise UsageError("give --dictionary FILE, --number LOW:HIGH for numbers, or --open-domain for any string")
    if memory_values is not None and not (memory and memory_values > 0):
        raise UsageError(f"memory-values is {memory_values}, must be at least 1 and given with --memory")
    deployment = None if config is None else Deployment.read(config)
    length = _length(window, deployment, is_noisy=is_noisy)
    added = _noise(before, epsilon, delta, length) if is_noisy else None
    shuffle = _over(
        None if before is None else before.shuffle,
        cap=cap,
        minimum_batch=1 if is_noisy and min_batch is None else min_batch,
        delta=delta,
    )
    given = {
        "epsilon": discovery_epsilon,
        "delta": discovery_delta,
        "relation": discovery_relation,
        "rule": discovery_rule,
        "counts": discovery_counts,
        "max_value_bytes": max_value_bytes,
        "hash": hash_,
    }
    discovery = _discovery(before, given, ends=no_discovery)
    start = options.begins_at(begins)
    public = directories.read_public(keys, start)
    issued = None if passes is None else read_pass_keys(passes)
    if discovery.get("hash") == "oblivious":
        used = _used(deployment, before)
        key = next_key(keys, start or MACHINE.now(), used)
        public = public.model_copy(update={"evaluator": (key,)})
    campaign = create_campaign(
        id,
        public,
        out.parent,
        mechanism=mechanism,
        epsilon=None if is_noisy else epsilon,
        noise=added,
        dictionary=domain.listed,
        number=domain.number,
        url=before.url if url is None and before is not None else url_part(url),
        axes=before.axes if not (by or public_by) and before is not None else axes_part(by, public_by),
        settings=settings,
        objective=objective,
        shuffle=shuffle,
        discovery=discovery or None,
        sample=_sampled(sample, layer, id, deployment, before),
        collectors=_collectors(deployment, before),
        passes=_passes(issued, before),
        windows=_windows(deployment, before, start or MACHINE.now()),
        memory=(memory_values or (1 if before is None else before.memory_values)) if memory else 0,
        epoch=epoch if epoch is not None else 1 if before is None else before.epoch + 1,
        previous=None if before is None else before.head,
    )
    _write(campaign, out, issued)
    for sentence in () if epsilon is None or is_noisy else epsilon_notes(epsilon):
        note(f"warning: {sentence}")
    return _described(campaign, out)


def _require_no_mechanism(
    before: Campaign | None, mechanism: str | None, settings: list[str] | None, *, mean: bool
) -> None:
    """Raise UsageError if the epoch before has no noise, or an option is of a mechanism."""
    if before is not None and before.noise is None:
        raise UsageError(f"campaign {before.id} has no noise in epoch {before.epoch}: make another campaign for noise")
    if mechanism is not None or settings:
        option = "--set" if mechanism is None else "--mechanism"
        raise UsageError(
            f"{option} contradicts noise of the mixes, which a campaign has in all epochs: leave the option out, or "
            "make another campaign"
        )
    if mean:
        raise UsageError("--mean contradicts noise of the mixes, which add dummies to items: give --bins in its place")


def _discovery(before: Campaign | None, given: Mapping[str, object], *, ends: bool) -> dict[str, object]:
    """Return the section of discovery, of the epoch before if options do not change it; empty: no discovery."""
    discovery = _over(None if before is None or ends else before.discovery, **given)
    if discovery and ends:
        raise UsageError(f"--no-discovery contradicts {', '.join(discovery)} of discovery: leave one of them out")
    if discovery and "epsilon" not in discovery:
        raise UsageError(f"{', '.join(discovery)} of discovery needs --discovery-epsilon: give it too")
    return {"delta": 1e-8, **discovery} if discovery else {}


def _noise(
    before: Campaign | None, epsilon: float | None, delta: float | None, length: timedelta | Unit | None
) -> NoisePart:
    """Return the noise of the mixes: that of the epoch before, changed by options.

    Args:
        length: of windows, or their unit if they follow a calendar; None: as before.
    """
    kept = None if before is None else before.noise
    if kept is None and (epsilon is None or length is None):
        option = "--epsilon" if epsilon is None else "--window, as 1d, or --config"
        raise UsageError(f"noise needs {option}: give it too")
    data: dict[str, Any] = {"delta": 1e-8} if kept is None else kept.model_dump()
    data |= {name: value for name, value in (("epsilon", epsilon), ("delta", delta)) if value is not None}
    if length is not None:
        data["seconds"] = int(length.total_seconds()) if isinstance(length, timedelta) else None
    return validated(NoisePart, data, "noise")


def _length(window: str | None, deployment: Deployment | None, *, is_noisy: bool) -> timedelta | Unit | None:
    """Return the length of windows, or their unit, of an option or of a deployment; None: neither is given."""
    if window is None:
        return None if deployment is None else deployment.windows.tiling.length
    if not is_noisy:
        raise UsageError(f"window is {window!r} without --noise: the app states the length then, so leave it out")
    if deployment is not None:
        raise UsageError("give --window or --config, not both: a deployment file states its windows")
    return options.span("window", window)


def _windows(deployment: Deployment | None, before: Campaign | None, start: datetime) -> WindowsPart | None:
    if deployment is not None:
        return windows_of(deployment.windows.tiling, start)
    return None if before is None else before.windows


def _passes(issued: PassKeys | None, before: Campaign | None) -> PassesPart | None:
    if issued is not None:
        return issued.part()
    return None if before is None else before.passes


def _write(campaign: Campaign, out: Path, issued: PassKeys | None) -> None:
    """Write a campaign file, and before it the public keys of passes that it names, if they are given."""
    if issued is not None:
        keys_of(campaign, issued)
        write_over(passes_beside(out, campaign.id), issued.model_dump_json(), 0o644)
    campaign.write(out)


def _unit(unit: str | None, bins: str | None, before: Campaign | None) -> str | None:
    """Return the unit of numbers; if none is given, other bins keep that of the epoch before."""
    if unit is None and bins is not None and before is not None and before.number is not None:
        return before.number.unit
    return unit


def _before(path: Path, id: str | None, epoch: int | None) -> Campaign:
    """Read the campaign file of the previous epoch."""
    before = Campaign.read(path)
    if id not in (None, before.id):
        raise UsageError(f"after is a file of campaign {before.id}, must be of {id}, as --id says: leave --id out")
    if epoch is not None and epoch <= before.epoch:
        raise UsageError(f"epoch is {epoch}, must be above {before.epoch}, the epoch of {path}")
    return before


@dataclass(frozen=True)
class _Domain:
    """What values may be, as options say it: items of a file, numbers, one item, or any string."""

    file: Path | None = None
    number: NumberPart | None = None
    flag: str | None = None
    is_open: bool = False

    @property
    def listed(self) -> Path | Dictionary | None:
        return self.file if self.flag is None else Dictionary((self.flag,), "--flag")

    @property
    def is_given(self) -> bool:
        return self != _Domain()

    def checked(self) -> _Domain:
        """Return this; UsageError if options contradict each other."""
        if (self.file is not None) + (self.number is not None) + (self.flag is not None) + self.is_open > 1:
            raise UsageError("give one of --dictionary, --number, --bins, --count, --flag and --open-domain")
        return self


def _domain(before: Campaign) -> _Domain:
    """Return the domain of the previous epoch."""
    if before.number is not None:
        return _Domain(number=before.number)
    if before.dictionary is None or before.path is None:
        return _Domain(is_open=before.mechanism is not None)
    return _Domain(before.path.with_name(before.dictionary.path))


def _over(before: ShufflePart | DiscoveryPart | None, **given: object) -> dict[str, object]:
    """Return the previous epoch's section, changed by options, without hash key: each campaign file has a new one."""
    fresh = {"hash_key", "hash_key_commitment"}
    kept = {} if before is None else before.model_dump(exclude=fresh)
    return kept | {name: value for name, value in given.items() if value is not None}


def _collectors(deployment: Deployment | None, before: Campaign | None) -> tuple[str, ...]:
    """Return the names of the collectors of a deployment, or those of the epoch before."""
    from pipelines.deployment.campaigns import collector_names

    named = () if deployment is None else collector_names(deployment)
    return named or ((COLLECTOR,) if before is None else before.collectors)


def _used(deployment: Deployment | None, before: Campaign | None) -> set[str]:
    """Return the ids of the evaluator's keys of the previous epoch, and of all campaigns of a deployment."""
    from pipelines.deployment.campaigns import used_keys

    used = set() if deployment is None else used_keys(deployment.campaigns)
    return used if before is None else used | {key.id for key in before.keys.evaluator}


def _sampled(
    share: str | None, layer: str | None, id: str, deployment: Deployment | None, before: Campaign | None
) -> SamplePart | None:
    """Return who is asked: the sample of the epoch before, widened into free buckets of its layer to a share."""
    from pipelines.deployment.campaigns import taken_buckets
    from pipelines.epochs.samples import widened

    asked = None if before is None else before.sample
    if share is None:
        if layer not in (None, None if asked is None else asked.layer):
            raise UsageError(f"layer is {layer!r} without --sample: give the share of clients that are asked too")
        return asked
    if before is not None and asked is None:
        raise UsageError(f"sample is {share!r}, but epoch {before.epoch} asks all clients: make another campaign")
    name = layer or (id if asked is None else asked.layer)
    taken = [] if deployment is None else taken_buckets(deployment.campaigns, name, id)
    return widened(asked, name, options.share_of(share, "sample"), [sample for _, sample in taken])


def show_campaign(
    campaign: Annotated[
        Path | None, Option(help="Campaign file.", show_default="the newest one of the deployment's only campaign")
    ] = None,
    config: options.Config = options.HERE,
) -> Answer:
    """Use it to check a campaign file, and to see its errors and guarantees.

    Example: hushcount campaign show --campaign words.json
    """
    if campaign is None:
        from pipelines.deployment.campaigns import require_campaign
        from pipelines.deployment.settings import Deployment

        campaign, _ = require_campaign(Deployment.read(config).campaigns, None).newest
    return _described(Campaign.read(campaign), campaign)


def redact_campaign(campaign: options.CampaignFile, out: FileOption) -> Answer:
    """Use it to make the file for the shuffler and the auxiliary server, which must not be able to hash values.

    An oblivious campaign needs no redacted file: without the evaluator nobody can hash a value.

    Example: hushcount campaign redact --campaign words.json --out parties.json
    """
    redacted = Campaign.read(campaign).redacted()
    redacted.write(out)
    return _described(redacted, out)


def schema() -> None:
    """Use it to check campaign files in another program.

    Example: hushcount campaign schema > campaign.schema.json
    """
    show_json(Campaign.model_json_schema())


def _described(campaign: Campaign, path: Path) -> Answer:
    data: dict[str, Any] = {
        "id": campaign.id,
        "epoch": campaign.epoch,
        "fingerprint": campaign.fingerprint.hex(),
        "head": campaign.head.hex(),
        "cap": campaign.shuffle.cap,
        "minimum_batch": campaign.shuffle.minimum_batch,
        "delta": campaign.shuffle.delta,
        "collectors": ", ".join(campaign.collectors),
    }
    if campaign.sample is not None:
        data |= {"layer": campaign.sample.layer, "asked": campaign.sample.share}
    if campaign.passes is not None:
        part = campaign.passes
        last = part.first + timedelta(days=len(part.days) - 1)
        data |= {"passes_from": str(part.first), "passes_to": str(last), "pass_seconds": part.seconds}
    if campaign.windows is not None:
        last = datetime.fromtimestamp(campaign.windows.starts[-1], timezone.utc)
        data["windows"] = f"calendar {campaign.windows.unit}s, listed until {last.isoformat()}"
    if campaign.memory:
        data |= {"memory_values": campaign.memory_values, "epsilon_of_an_epoch": campaign.epoch_epsilon}
    for role, listed in campaign.keys:
        if not listed and role == "evaluator":
            continue
        data[f"{role}_keys"] = ", ".join(f"{key.id} to {key.not_after.date()}" for key in listed)
    if campaign.dictionary is not None:
        data["dictionary"] = f"{campaign.dictionary.path}, {campaign.dictionary.items:,} items"
    if campaign.number is not None:
        data["numbers"] = campaign.number.words
    if campaign.url is not None:
        data["addresses"] = campaign.url.words
    if campaign.axes is not None:
        data["axes"] = campaign.axes.words
    if campaign.mechanism is not None:
        mechanism = campaign.require_frequency()
        data["domain"] = "open" if campaign.dictionary is None else "the dictionary and 'other'"
        data |= {
            "mechanism": campaign.mechanism.name,
            "parameters": dict(campaign.mechanism.parameters),
            "epsilon_spent": mechanism.epsilon,
            "p": mechanism.p_star,
            "q": mechanism.q_star,
            "standard_error_of_100000_reports": _error_of(campaign, 100_000),
            "report_bytes": mechanism.report_bytes,
            "sealed_bytes": campaign.sealed_bytes("reports"),
        }
    data |= _of_noise(campaign)
    if campaign.discovery is not None:
        rule = campaign.require_keep_rule()
        data |= {
            "discovery_hash": campaign.discovery.hash,
            "discovery_epsilon": rule.epsilon,
            "discovery_delta": rule.delta,
            "discovery_relation": rule.relation,
            "discovery_sealed_bytes": campaign.sealed_bytes("discovery"),
            "clients_for_even_chance": rule.count_for(0.5),
            "clients_for_95_percent": rule.count_for(0.95),
            "count_deviation": rule.count_deviation,
        }
    return Answer({**data, "campaign": campaign.model_dump(mode="json")}, [facts(f"campaign file {path}", data)])


def _of_noise(campaign: Campaign) -> dict[str, Any]:
    """Return what a campaign with noise of the mixes is like; empty: it has a mechanism."""
    if campaign.noise is None:
        return {}
    # All windows of a calendar are listed, so it states no length.
    stated = {} if campaign.noise.seconds is None else {"window_seconds": campaign.noise.seconds}
    dummies = campaign.require_frequency().encoder.noise
    return {
        "domain": "the dictionary and 'other'",
        "reports": "sealed, not randomised: shuffler and auxiliary server each add dummies",
        "noise_epsilon": campaign.noise.epsilon,
        "noise_delta": campaign.noise.delta,
        **stated,
        "standard_error": _error_of(campaign, 1),
        "dummies_of_a_cell": None if dummies is None else dummies.mean,
        "sealed_bytes": campaign.sealed_bytes("reports"),
    }


def _error_of(campaign: Campaign, reports: int) -> float:
    """Return the standard error of the count of an item that nobody holds, or of a mean at the worst number."""
    if campaign.number is not None and campaign.number.mean:
        low, high = campaign.number.bins.values
        return (high - low) * (campaign.require_line().weights.worst / reports) ** 0.5
    return float(campaign.cells_an_item * campaign.require_frequency().variance(reports, 0.0)) ** 0.5


def _mechanism_of_mean(epsilon: float | None) -> str:
    if epsilon is None:
        raise UsageError("give --epsilon with --mean")
    return MEAN
