"""hushcount keys rehearse: before a switch of keys, prove that each party can open the reports of clients."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from hushcount.campaigns.campaign import Campaign
from hushcount.clock import MACHINE
from hushcount.errors import HushcountError, RetiredKey, UsageError
from hushcount.randomness import SystemWords, hex_seed
from keys import directories
from keys.directories import campaign_key
from keys.roles import EVALUATING_ROLES, OPENING_ROLES, OpeningRole
from pipelines.engine.runner import Engine
from pipelines.handover.evaluator_address import Evaluator
from pipelines.jobs.analyze import plan_analyze
from pipelines.jobs.discover import plan_discover
from pipelines.jobs.encode import plan_encode
from pipelines.jobs.found import read_found
from pipelines.jobs.job import run
from pipelines.jobs.shuffle import plan_shuffle

_LISTED = 10
_UNLISTED = 10
_SURE = 1.0 - 1e-9
_NAMES: dict[OpeningRole, str] = {"analyzer": "analyzer", "aux_server": "auxiliary server"}


@dataclass(frozen=True)
class PartRehearsed:
    """The result of the rehearsal of one party's key.

    Attributes:
        key: id of the campaign's key for the party's role.
        not_before, not_after: the time in which clients may seal to the key.
        sent: number of made-up reports and of released values, by kind, that the party had to open.
        opened: number of these reports and values that the party opened, by kind.
        problem: why the rehearsal failed, or None.
    """

    role: OpeningRole
    key: str
    not_before: str
    not_after: str
    sent: dict[str, int]
    opened: dict[str, int]
    problem: str | None


@dataclass(frozen=True)
class Rehearsal:
    """The results of a rehearsal, one for each party."""

    campaign: str
    epoch: int
    parties: tuple[PartRehearsed, ...]

    @property
    def passed(self) -> bool:
        """Whether every party opened all reports that were sent to it."""
        return all(part.problem is None for part in self.parties)

    def data(self) -> dict[str, Any]:
        """Return the result as JSON data."""
        return {**asdict(self), "passed": self.passed}

    def sentences(self) -> list[str]:
        """Return the result as text: one sentence for each party."""
        lines = []
        for part in self.parties:
            counts = ", ".join(f"{part.opened.get(name, 0)} of {sent} {name}" for name, sent in part.sent.items())
            span = f"which clients seal to from {part.not_before} to {part.not_after}"
            said = f"{_NAMES[part.role]}: opened {counts or 'nothing'} with key {part.key}, {span}"
            lines.append(said if part.problem is None else f"{said}: FAILED: {part.problem}")
        return lines


def rehearse(
    campaign_path: Path, sources: Sequence[Path | str], roles: Sequence[OpeningRole] = OPENING_ROLES
) -> Rehearsal:
    """Let each party's jobs open made-up reports of a campaign, with the keys that will open the real reports.

    Each party is rehearsed separately: temporary keys replace the keys of the other party and of the evaluator. The
    made-up reports belong to a twin of the campaign. The twin has the same keys, mechanism, dictionary and discovery,
    but a minimum batch of one, and its keys are valid now. It has no noise of the mixes, which only runs add. The
    twin's fingerprint differs from the campaign's, so no batch of the real campaign accepts the made-up reports.

    Args:
        campaign_path: the campaign file of the next epoch.
        sources: key directories or env:NAME; each party's key is searched in all of them.
        roles: roles of the parties to rehearse; without discovery and noise the auxiliary server is skipped.

    Raises:
        UsageError: the campaign file cannot be used, or no party in `roles` has reports to open.
    """
    campaign = Campaign.read(campaign_path)
    mixes = campaign.discovery is not None or campaign.noise is not None
    wanted = [role for role in roles if role == "analyzer" or mixes]
    if not wanted:
        raise UsageError(f"campaign {campaign.id} has no discovery, so the auxiliary server has no reports to open")
    if "analyzer" in wanted and campaign.discovery is not None:
        campaign.require_whole()
    parties = tuple(_rehearse_party(campaign, campaign_path.parent, sources, role) for role in wanted)
    return Rehearsal(campaign.id, campaign.epoch, parties)


def _rehearse_party(
    campaign: Campaign, beside: Path, sources: Sequence[Path | str], role: OpeningRole
) -> PartRehearsed:
    (key,) = getattr(campaign.keys, role)
    sent: dict[str, int] = {}
    opened: dict[str, int] = {}
    problem = None
    try:
        if key.not_after <= MACHINE.now():
            raise HushcountError(f"no client seals to key {key.id} any more: it expired at {key.not_after.isoformat()}")
        source = _source(campaign, sources, role)
        with tempfile.TemporaryDirectory(prefix="hushcount-rehearsal-") as made:
            path = _write_twin(campaign, beside, role, Path(made))
            _run_jobs(path, role, source, Path(made), sent, opened)
        short = [name for name, number in sent.items() if opened.get(name, 0) != number]
        if short:
            raise HushcountError(f"not all {' and '.join(short)} were opened")
    except HushcountError as error:
        problem = str(error)
    return PartRehearsed(role, key.id, key.not_before.isoformat(), key.not_after.isoformat(), sent, opened, problem)


def _source(campaign: Campaign, sources: Sequence[Path | str], role: OpeningRole) -> Path | str:
    """Return the first source that has the campaign's key for a role."""
    refusals = []
    for source in sources:
        try:
            campaign_key(source, role, getattr(campaign.keys, role))
            return source
        except RetiredKey:
            raise
        except HushcountError as error:
            refusals.append(str(error))
    raise UsageError("; ".join(refusals))


def _write_twin(campaign: Campaign, beside: Path, role: OpeningRole, directory: Path) -> Path:
    """Write the twin of a campaign, and a directory with temporary keys for the other party and the evaluator."""
    now = MACHINE.now()
    data = campaign.model_dump(mode="json")
    data["shuffle"]["minimum_batch"] = 1
    # A memory repeats a client's answers and changes no report's form, but made-up clients keep none. Nor do addresses
    # change the form, and made-up values are none.
    data |= {"url": None, "memory": False, "memory_values": Campaign.model_fields["memory_values"].default}
    others = [other for other in OPENING_ROLES if other != role]
    roles = (*others, *(EVALUATING_ROLES if campaign.is_oblivious else ()))
    played = directories.create(directory / "played", days=2, roles=roles, now=now - timedelta(days=1))
    for name in roles:
        data["keys"][name] = [key.model_dump(mode="json") for key in getattr(played, name)]
    for key in data["keys"][role]:
        key |= {"not_before": (now - timedelta(days=1)).isoformat(), "not_after": (now + timedelta(days=1)).isoformat()}
    if data["discovery"] is not None and data["discovery"]["hash_key_commitment"] is not None:
        data["discovery"] |= {"hash_key": hex_seed(SystemWords()), "hash_key_commitment": None}
    if campaign.noise is not None:
        # A report of this mechanism is a box of the same form.
        data |= {"noise": None, "mechanism": {"name": "grr", "epsilon": 1.0}}
    if role == "aux_server":
        # The auxiliary server opens no plain reports and may lack the dictionary. Layers open as discovery reports do.
        keyed = {"epsilon": 1.0, "delta": 1e-8, "hash_key": hex_seed(SystemWords())}
        data |= {"mechanism": None, "dictionary": None, "number": None, "axes": None}
        data["discovery"] = data["discovery"] or keyed
    elif data["dictionary"] is not None:
        name = data["dictionary"]["path"]
        (directory / name).symlink_to((beside / name).absolute())
    path = directory / "twin.json"
    Campaign.model_validate(data).write(path)
    return path


def _run_jobs(
    path: Path, role: OpeningRole, source: Path | str, directory: Path, sent: dict[str, int], opened: dict[str, int]
) -> None:
    """Run all jobs; count the reports sent to the party in `sent`, and the reports that it opened in `opened`."""
    twin, engine, played = Campaign.read(path), Engine(), directory / "played"
    encoded, shuffled, released = (str(directory / name) for name in ("encoded", "shuffled", "released"))
    values, item = directory / "values.txt", directory / "item.txt"
    unlisted, lines = _values(twin)
    values.write_text("".join(f"{client}\t{line}\n" for client, line in enumerate(lines)), encoding="utf-8")
    evaluator = Evaluator(str(played)) if twin.is_oblivious else None
    made = run(plan_encode(path, values, encoded, clients=True, evaluator=evaluator), engine)
    run(plan_shuffle(path, encoded, shuffled), engine)
    if twin.discovery is not None:
        if role == "aux_server":
            sent["discovery reports"] = made.accepted_of("discovery")
        keys = source if role == "aux_server" else played
        summary = run(plan_discover(path, shuffled, keys, released, party="aux-server"), engine)
        if role == "aux_server":
            opened["discovery reports"] = summary.accepted_of("discovery")
            return
        found = str(directory / "found")
        sent["released values"] = 1
        run(plan_discover(path, released, source, found, party="analyzer", evaluator=evaluator), engine)
        opened["released values"] = int(list(read_found(Path(found), twin).items) == [unlisted])
    if twin.mechanism is not None:
        sent["frequency reports"] = made.accepted_of("reports")
        # In an open domain without a sketch, the tally counts only items that are named before the tally is made.
        item.write_text(f"{unlisted}\n", encoding="utf-8")
        items = item if twin.dictionary is None else None
        summary = run(plan_analyze(path, shuffled, source, str(directory / "results"), items=items), engine)
        opened["frequency reports"] = summary.accepted


def _values(twin: Campaign) -> tuple[str, list[str]]:
    """Return a value outside the dictionary, and the lines of a values file.

    The lines repeat a value outside the dictionary so often that its bin is kept, and hold some items of the
    dictionary.
    """
    dictionary = twin.read_dictionary()
    items = () if dictionary is None else dictionary.items
    longest = 32 if twin.discovery is None else min(32, twin.discovery.max_value_bytes)
    random = (hex_seed(SystemWords())[:longest] for _ in range(100))
    letters = (chr(code) for code in range(33, 127))
    for value in (*random, *letters):
        if dictionary is None or value not in dictionary:
            often = _UNLISTED if twin.keep_rule is None else max(_UNLISTED, twin.keep_rule.count_for(_SURE))
            return value, [value] * often + list(items[:_LISTED])
    raise UsageError(
        f"the dictionary lists every value of at most {longest} bytes that was tried: no value is left to discover"
    )
