"""hushcount keys: make, list, rotate, retire and rehearse key pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ValidationError
from rich.progress import track
from typer import Exit, Option, confirm

from hushcount.campaigns.parts import COLLECTOR, MOST_PASS_DAYS
from hushcount.clock import MACHINE
from hushcount.errors import UsageError
from hushcount.formats.client_files import locked
from hushcount.formats.models import explain
from hushcount.formats.whole_files import write_over
from hushcount.passes.pass_keys import PassParties, passes_beside, period_of, slots_a_day
from keys import directories, rotation
from keys.issuing import PrivatePassKeys, drawn_keys, private_file, public_keys, read_private_keys, write_private_keys
from keys.listing import KeyListing, read_listing
from keys.records import key_path
from keys.roles import OPENING_ROLES, Role
from pipelines.console import options
from pipelines.console.answer import Answer, note, progress_console
from pipelines.console.tables import facts

RoleName = Literal[
    "both", "analyzer", "aux-server", "evaluator", "operator", "publisher", "shuffler", "aux-signer", "analyzer-signer",
    "handing-on",
]  # fmt: skip
_ROLES: dict[RoleName, tuple[Role, ...]] = {
    "both": OPENING_ROLES,
    "analyzer": ("analyzer",),
    "aux-server": ("aux_server",),
    "evaluator": ("evaluator",),
    "operator": ("operator",),
    "publisher": ("publisher",),
    "shuffler": ("shuffler",),
    "aux-signer": ("aux_signer",),
    "analyzer-signer": ("analyzer_signer",),
    "handing-on": ("shuffler", "aux_signer", "analyzer_signer"),
}
KeysOption = Annotated[Path, Option("--keys", help="Key directory of hushcount keys new.")]
DaysOption = Annotated[int, Option(help="Days for which the keys are valid.", max=36_500)]
NumberOption = Annotated[
    int, Option("--number", help="With the role evaluator: number of keys, one for each epoch.", min=1, max=1000)
]
WrapOption = Annotated[
    str | None, Option(help="Key service to wrap the private keys: gcp-kms://projects/... or aws-kms://arn:aws:kms:...")
]


def new_keys(
    out: Annotated[Path, Option(help="Directory for the key files.")],
    days: DaysOption = 365,
    role: Annotated[
        RoleName,
        Option(
            metavar="ROLE",
            help="Role of the keys. Keys of analyzer and aux-server (both) open reports; evaluator keys make "
            "evaluations; operator, publisher, shuffler, aux-signer and analyzer-signer keys sign. handing-on means "
            "the last three.",
        ),
    ] = "both",
    number: NumberOption = 1,
    wrap: WrapOption = None,
) -> Answer:
    """Use it first. In production, each party makes its own key on its own machine, with --role.

    Example: hushcount keys new --out keys
    """
    directories.create(out, days, _ROLES[role], wrap=wrap, number=number)
    return _listed(out)


def list_keys(keys: KeysOption) -> Answer:
    """Use it to see which keys may be retired, and to copy public keys. It never shows a private key.

    Example: hushcount keys list --keys keys
    """
    return _listed(keys)


def rotate_keys(
    keys: KeysOption,
    overlap: Annotated[str, Option(help="Time for which the old keys still open reports, as in 7d.")],
    role: Annotated[
        RoleName | None, Option(metavar="ROLE", help="As for keys new.", show_default="all roles in the directory")
    ] = None,
    begins: options.Begins = None,
    days: DaysOption = 365,
    number: NumberOption = 1,
    wrap: WrapOption = None,
) -> Answer:
    """Use it before the next epoch, which needs a rehearsal of the new keys. The old keys stay until you retire them.

    Example: hushcount keys rotate --keys keys --overlap 7d
    """
    roles = None if role is None else _ROLES[role]
    wait = options.span("overlap", overlap)
    begin = options.begins_at(begins)
    listing = rotation.rotate(keys, roles, overlap=wait, begins=begin, days=days, number=number, wrap=wrap)
    return _listed(keys, _next_steps(listing, roles))


def retire_key(
    keys: KeysOption,
    id: Annotated[str, Option(help="Id of the key, from hushcount keys list.")],
    early: Annotated[
        bool, Option("--early", help="Also during the overlap with the next key; an evaluator's key at any time.")
    ] = False,
    yes: Annotated[bool, Option("--yes", help="Do not ask for confirmation.")] = False,
) -> Answer:
    """Use it when keys list says that a key may be retired: its reports count as retired_key from then on.

    Give --early to retire an evaluator's key that is still valid: the key directory does not know when its epoch is
    over. hushcount doctor says when to retire such a key.

    This overwrites and removes the key file; an SSD, a snapshot or a backup may still keep the old bytes.

    Example: hushcount keys retire --keys keys --id 0123456789abcdef
    """
    key = rotation.require_retirable(keys, read_listing(keys), id, MACHINE.now(), early)
    lost = "verify released values of its epoch" if key.role == "evaluator" else "open its reports"
    question = f"Destroy the {key.role} key {id}? Nobody can ever {lost} again"
    if not yes and not confirm(question, err=True):
        note("nothing was done")
        raise Exit(1)
    rotation.retire(keys, id, early=early)
    return _listed(keys)


def pass_keys(
    campaign_id: Annotated[str, Option(help="Id of the campaign whose clients need passes.")],
    out: Annotated[Path, Option(help="Directory for the key files; further days are added to those in it.")],
    days: Annotated[int, Option(help="Days to make keys for.", min=1, max=MOST_PASS_DAYS)] = 30,
    first: Annotated[
        str | None, Option(help="First day, as 2026-12-01.", show_default="today, or the day after those in --out")
    ] = None,
    collector: Annotated[
        list[str] | None, Option(help="Name of a collector of the campaign; once for each.", show_default=COLLECTOR)
    ] = None,
    evaluator: Annotated[bool, Option("--evaluator", help="The campaign has an evaluator.")] = False,
    window: Annotated[str, Option(help="Length of the operator's windows, as in 1d or 1h.")] = "1d",
) -> Answer:
    """Use it on the issuer's machine. The file .private.json stays there; campaign new takes the file .passes.json.

    Run it again before the last day, with the same options: it adds days. Then make and publish the next epoch.

    Example: hushcount keys passes --campaign-id words --out passes
    """
    path, named = private_file(out, campaign_id), tuple(collector or [COLLECTOR])
    seconds = period_of(options.span("window", window), evaluator)
    try:
        out.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot make directory {out}: {error.strerror}") from None
    # Of two runs at once, the later one would replace keys that are published already.
    with locked(path, "private pass keys"):
        private = _with_days(path, campaign_id, (named, evaluator, seconds), days, first)
        write_private_keys(path, private)
    public = passes_beside(path, campaign_id)
    write_over(public, public_keys(private).model_dump_json(), 0o644)
    last = private.first + timedelta(days=len(private.days) - 1)
    data = {"public": str(public), "private": str(path), "from": str(private.first), "to": str(last)}
    return Answer(
        {**data, "pass_seconds": seconds, "keys": len(private.days) * slots_a_day(private.parties)}, [facts("", data)]
    )


def _with_days(path: Path, campaign: str, parties: PassParties, days: int, first: str | None) -> PrivatePassKeys:
    """Return the keys of a file with new days after its last, without the days that are over."""
    today = MACHINE.now().date()
    before = read_private_keys(path) if path.exists() else None
    if before is not None and (first is not None or (before.campaign, before.parties) != (campaign, parties)):
        raise UsageError(f"{path} has other collectors, evaluator or window, or --first is given: repeat its options")
    begins, kept = (_first_day(first, today), ()) if before is None else (before.first, before.days)
    gone = min(len(kept), max(0, (today - timedelta(days=1) - begins).days))
    have = len(kept) - gone
    if have + days > MOST_PASS_DAYS:
        most = f"{MOST_PASS_DAYS - have}: {have} of at most {MOST_PASS_DAYS} days have keys"
        raise UsageError(f"days is {days}, must be at most {most}")
    collectors, evaluator, seconds = parties
    slots = slots_a_day(parties)
    drawn = drawn_keys(days * slots, _progress)
    made = tuple(tuple(drawn[place : place + slots]) for place in range(0, len(drawn), slots))
    try:
        return PrivatePassKeys(
            campaign=campaign,
            collectors=collectors,
            evaluator=evaluator,
            seconds=seconds,
            first=begins + timedelta(days=gone),
            days=(*kept[gone:], *made),
        )
    except ValidationError as error:
        raise UsageError(f"these keys would be invalid: {explain(error)}") from None


def _first_day(text: str | None, today: date) -> date:
    try:
        return today if text is None else date.fromisoformat(text)
    except ValueError:
        raise UsageError(f"first is {text!r}, must be a day, as in 2026-12-01") from None


def _progress(keys: Iterable[bytes], number: int) -> Iterator[bytes]:
    yield from track(keys, "making keys", number, console=progress_console(), transient=True)


def rehearse_keys(
    campaign: options.CampaignFile,
    keys: Annotated[list[str], Option(help="Key directory or env:NAME; once for each party.")],
    party: options.Party = "both",
) -> Answer:
    """Use it before you publish an epoch. Exit status 1: a party cannot open the reports that clients will send.

    It runs the jobs on made-up reports in a temporary directory; it keeps, charges and sends nothing.

    Example: hushcount keys rehearse --campaign next.json --keys keys
    """
    from pipelines.jobs.rehearse import rehearse

    parties = {"both": OPENING_ROLES, "analyzer": ("analyzer",), "aux-server": ("aux_server",)}
    result = rehearse(campaign, keys, parties[party])
    return Answer(result.data(), result.sentences(), status=0 if result.passed else 1)


def _next_steps(listing: KeyListing, roles: tuple[Role, ...] | None) -> list[str]:
    """Return a sentence on how clients get new keys that open reports; the other roles need no new epoch."""
    made = {key.role for key in listing.keys} if roles is None else set(roles)
    if not made & set(OPENING_ROLES):
        return []
    return [
        "clients seal to the new keys from the next epoch on: hushcount run rehearses and publishes it if the "
        "deployment file has a table [next_epoch.CAMPAIGN]; otherwise run hushcount campaign new --after, hushcount "
        "keys rehearse and hushcount campaign publish"
    ]


def _listed(directory: Path, following: Sequence[str] = ()) -> Answer:
    listing, now = read_listing(directory), MACHINE.now()
    facts = [_facts(directory, listing, position, now) for position in range(len(listing.keys))]
    lines = [f"keys in {directory}"]
    for fact in facts:
        lines += [f"  {fact['role']} {fact['id']}, {_sentence(fact)}", f"    public key {fact['key']}"]
    return Answer({"directory": str(directory), "keys": facts}, [*lines, *following])


def _facts(directory: Path, listing: KeyListing, position: int, now: datetime) -> dict[str, Any]:
    key = listing.keys[position]
    until, state = listing.opened_until(key), listing.state(key, now)
    return {
        "role": key.role,
        "id": key.id,
        "state": state,
        "key": key.key,
        "not_before": key.not_before.isoformat(),
        "not_after": key.not_after.isoformat(),
        "opened_until": None if until is None else until.isoformat(),
        "retired_at": None if key.retired_at is None else key.retired_at.isoformat(),
        "may_be_retired": state == "expiring" and until is not None and until <= now,
        "private_key_here": key_path(directory, key.role, key.id).exists(),
    }


def _sentence(fact: dict[str, Any]) -> str:
    """Return a sentence on the state and the dates of a key."""
    text = f"{fact['state']}, valid {fact['not_before']} to {fact['not_after']}"
    if fact["retired_at"] is not None:
        return f"{text}, retired on {fact['retired_at']}"
    if fact["state"] == "expiring" and fact["opened_until"] is not None:
        text += f", opens reports until {fact['opened_until']}"
        text += ": may be retired" if fact["may_be_retired"] else ""
    return text if fact["private_key_here"] else f"{text}; its private key is not here"
