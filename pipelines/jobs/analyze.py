"""hushcount job analyze: turn permuted sealed reports into a tally, estimates and a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import apache_beam as beam
import numpy as np
from apache_beam.pvalue import PCollection
from apache_beam.transforms.window import BoundedWindow
from apache_beam.typehints import with_input_types, with_output_types

from analyzer.atoms import Atom, joined
from analyzer.open_reports import OpenReports
from analyzer.tally_reports import Place as TallyPlace
from analyzer.tally_reports import Sums, TallyReports, read_part, rows_per_block
from hushcount.arrays import UInt64Array
from hushcount.campaigns.campaign import Campaign, Stream
from hushcount.campaigns.dictionary import known_items, tally_items
from hushcount.campaigns.public_keys import VerifyKeyPart
from hushcount.collection.windows import Window
from hushcount.errors import HushcountError, RetiredKey, UsageError
from hushcount.estimating import flagged
from hushcount.oracles.estimates import Levels
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.repeats import new_repeats
from hushcount.oracles.tally import AtomTally, Tally, narrowed
from keys.directories import KeyReference, campaign_key
from keys.opening_engines import require_opening_engine
from pipelines.files import storage
from pipelines.files.block_files import find_files
from pipelines.files.item_files import read_names
from pipelines.files.orders import MOST_TOGETHER, Folder, number_of
from pipelines.handover.retired import RetiredBatch
from pipelines.handover.upstream import check_complete, read_upstream
from pipelines.jobs import results
from pipelines.jobs.dead_letters import kept_of
from pipelines.jobs.found import Found, read_found
from pipelines.jobs.job import Finished, Place
from pipelines.jobs.opening import OpeningJob, OpeningSteps
from pipelines.jobs.together import BatchJob, Where
from pipelines.ledger.charging import Charging
from pipelines.ledger.own_time import ALONE, LedgerClock
from pipelines.outputs.account import Hop
from pipelines.outputs.counts import SEALED
from pipelines.outputs.received_summary import folder_of
from pipelines.outputs.staging import BY_HAND, Output, Writer, require_free
from pipelines.outputs.summary import HopSummary, make_summary
from pipelines.outputs.withheld import require_minimum

_MOST_CELLS = 1 << 25
"""The most cells of all tallies in one graph (256 MiB).

A worker keeps the tallies of all batches of a graph in memory.
"""


@dataclass(frozen=True, kw_only=True)
class AnalyzeSteps(OpeningSteps):
    """Open the reports, and tally the items in `columns`."""

    stream: ClassVar[Stream] = "reports"
    mechanism: Mechanism
    columns: UInt64Array

    @property
    def record_bytes(self) -> int:
        return self.campaign.stratum_bytes("reports") + self.campaign.box_bytes

    @property
    def follows_from(self) -> tuple[bytes, ...]:
        return self.key.id.encode(), self.columns.tobytes()

    def add(self, files: Mapping[str, PCollection], where: Where) -> PCollection:
        opens = OpenReports(self.key, self.campaign, where.records.get("reports", 0))
        read, opened = self.opened(files, where, opens)
        counts, allowed = self.count(where, read, opened)
        write = WriteTallyPart(where.folder(".tally"))
        written = (
            opened.accepted
            | "tally" >> TallyReports(self.mechanism, self.columns)
            | "write tally" >> beam.ParDo(write, True if allowed is None else allowed)
        )
        return (counts, where.written(written, "tally")) | "all of the tally" >> beam.Flatten()


def analyze_steps(
    campaign: Campaign, key: KeyReference, asked: UInt64Array | None = None, grouped: Sequence[str] = ()
) -> AnalyzeSteps:
    """Return the steps of an analysis.

    Args:
        asked: items to count in an open domain without a sketch.
        grouped: names of further items to count in an open domain without a sketch.

    Raises:
        UsageError: `asked` is None and `grouped` is empty in an open domain without a sketch.
    """
    mechanism = campaign.require_frequency()
    if grouped:
        named = known_items(mechanism, None, grouped)
        asked = named if asked is None else np.concatenate([asked, named])
    return AnalyzeSteps(campaign=campaign, key=key, mechanism=mechanism, columns=tally_items(mechanism, asked))


@dataclass(frozen=True, kw_only=True)
class AnalyzeJob(OpeningJob):
    """Open and tally the reports, estimate `wanted`, and show `found` on the page."""

    name: ClassVar[str] = "analyze"
    hop: ClassVar[str] = "analyze"
    charges: ClassVar[Hop] = "analyze"
    steps: AnalyzeSteps
    wanted: results.Wanted | None
    levels: Levels
    found: Found | None
    window: Window | None

    @property
    def most(self) -> int:
        rows, width = self.steps.mechanism.encoder.tally_shape(self.steps.columns)
        cells = rows * width * self.campaign.public_strata
        return min(MOST_TOGETHER, max(1, _MOST_CELLS // max(1, cells)))

    def finish(self, place: Place, sums: Mapping[str, int], charge: Charging) -> Finished:
        counts, opening = self.counted(sums)
        does = self.steps
        found = gather_sums(does.mechanism, does.columns, storage.join(place.directory, ".tally"))
        accepted, campaign, directory = counts["reports"].accepted, self.campaign, place.directory
        counted = accepted + (self.upstream.dummies or 0)
        if (reports := sum(one.reports for one in found.values())) != counted:
            raise HushcountError(f"the tally holds {reports} reports, must hold {counted}: report this bug")
        atoms = self._atoms(found)
        if campaign.stratum_bytes("reports"):
            counts = {"reports": counts["reports"].rejecting("small_atom", sum(one.reports for _, one in atoms))}
            accepted = counts["reports"].accepted
            require_minimum(self.hop, campaign, "reports", counts["reports"], self.upstream, opening)
        tally = self._tally(atoms)
        repeats = np.sum([one.repeats for _, one in atoms], axis=0)
        tally = replace(tally, flags=flagged(campaign, tally, repeats))
        summary = make_summary("analyze", campaign, counts, accepted, self.upstream, opening=opening)
        summary = replace(summary, dead_letters=kept_of(directory, counts))
        wanted, levels = self.wanted, self.levels
        summary = results.write_results(directory, campaign, tally, wanted, levels, summary, self.found, self.window)
        results.write_tally(directory, replace(tally, flags=summary.flags or tally.flags), campaign)
        return Finished(summary)

    def _atoms(self, found: Mapping[int, Sums]) -> list[Atom]:
        """Return the strata and the sums of each atom; without public axes, no strata and the sums of all reports."""
        listed = self.upstream.atoms
        if not self.campaign.stratum_bytes("reports"):
            return [((), found[0])]
        if any(atom >= len(listed) for atom in found):
            raise HushcountError(
                f"{self.folder} has reports of atom {max(found)}, must be below {len(listed)}, the number of atoms "
                "that the shuffler lists: get its output anew"
            )
        atoms = [(listed[atom].strata, one) for atom, one in sorted(found.items())]
        return joined(atoms, self.campaign.shuffle.minimum_batch)

    def _tally(self, atoms: Sequence[Atom]) -> Tally:
        """Return the tally of all reports, with that of each atom if the campaign has public axes."""
        items, senders = self.steps.columns, self.upstream.senders
        if not self.campaign.stratum_bytes("reports"):
            ((_, one),) = atoms
            return Tally(one.counts, one.reports - (self.upstream.dummies or 0), items, senders)
        return Tally.of([AtomTally(strata, one.reports, one.counts) for strata, one in atoms], items, senders)


def plan_analyze(  # noqa: PLR0913  # each is an option of `analyze`
    campaign_path: Path,
    input_directory: str,
    keys: Path | str,
    out: str,
    *,
    items: Path | None = None,
    found: Path | str | None = None,
    nothing_found: bool = False,
    grouped: Sequence[str] = (),
    levels: Levels | None = None,
    ledger: Path | None = None,
    clock: LedgerClock = ALONE,
    window: Window | None = None,
    signed_by: Sequence[VerifyKeyPart] = (),
    overwrite: bool = False,
    writer: Writer = BY_HAND,
) -> BatchJob | RetiredBatch:
    """Plan to open and tally, and write estimates.parquet, estimates.csv, tally.npz, report.html and summary.json.

    Args:
        input_directory: the output of hushcount job shuffle.
        keys: directory with the analyzer's private key, or env:NAME, an environment variable of every worker.
        items: items to estimate, one a line or a .csv with the column item; None: the whole dictionary. In an open
            domain None means the items of `found`; if `found` is None too, only a tally is made.
        found: a result of hushcount job discover, for the page.
        nothing_found: whether discovery ended without a result. In an open domain without a sketch, a tally without
            items is then made; if false, `items`, `found` or `grouped` must be given, because the caller may have
            forgotten the items.
        grouped: names of further items to count in an open domain without a sketch.
        levels: confidence of the intervals and false-positive rate of detection.
        signed_by: the shuffler's public keys, one of which must have signed the input; empty: signatures are not
            checked.
        ledger: the ledger that charges the release, once for each input; None: nothing is charged.
        clock: returns the ledger's time.
        window: the window at the end of which the batch was made, for the table; None: not known.

    Raises:
        UsageError: a file or key is missing or invalid, `out` is taken, or the environment names an unknown opening
            engine.
        SignatureError: none of the keys in `signed_by` signed the input as it is.
    """
    campaign = Campaign.read(campaign_path)
    mechanism = campaign.require_frequency()
    to = Output(out, overwrite, writer)
    require_opening_engine()
    try:
        reference = campaign_key(keys, "analyzer", campaign.keys.analyzer)
    except RetiredKey as retired:
        return RetiredBatch(retired, campaign, "analyze", input_directory, to, signed_by)
    read = (input_directory, keys, campaign_path, items, found, ledger)
    require_free(out, overwrite, ("analyze",), read)
    dictionary = campaign.read_dictionary()
    revealed = None if found is None else read_found(found, campaign)
    names = read_names(items) if items else None
    if names is None and dictionary is None and revealed is not None and revealed.items:
        names = list(revealed.items)
    wanted = results.wanted_items(mechanism, dictionary, names, as_named=items is not None)
    asked = None if wanted is None else wanted.items
    if asked is None and (nothing_found or revealed is not None):
        asked = np.empty(0, dtype=np.uint64)
    steps = analyze_steps(campaign, reference, asked, grouped)
    before = "shuffle" if campaign.noise is None else "mix"
    upstream = read_upstream(input_directory, before, campaign, signed_by, "reports")
    reports = storage.join(folder_of(input_directory, upstream), "reports")
    files = find_files(reports, SEALED["reports"])
    # The ledger computes the cost of the release from the number of reports that the hop before states, so check that
    # the files hold this number.
    check_complete(upstream, campaign, "reports", files, exact=True)
    _require_atoms(campaign, upstream, input_directory)
    return AnalyzeJob(
        campaign=campaign,
        to=to,
        ledger=ledger,
        clock=clock,
        steps=steps,
        upstream=upstream,
        folder=reports,
        files=files,
        wanted=wanted,
        levels=levels or Levels(),
        found=revealed,
        window=window,
    )


def _require_atoms(campaign: Campaign, upstream: HopSummary, directory: str) -> None:
    """Raise UsageError unless the shuffler lists atoms of all reports, of this campaign's public strata."""
    strata = [stratum for atom in upstream.atoms for stratum in atom.strata]
    reports = sum(atom.reports for atom in upstream.atoms)
    wanted = upstream.accepted_of("reports") if campaign.stratum_bytes("reports") else 0
    if reports != wanted or max(strata, default=0) >= campaign.public_strata:
        raise UsageError(
            f"{directory} lists {len(upstream.atoms)} atoms of {reports:,} reports, must list those of {wanted:,} "
            f"reports in strata below {campaign.public_strata:,}: get the shuffler's output anew"
        )


@with_input_types(tuple[TallyPlace, Sums], bool)
@with_output_types(tuple[int, int])
class WriteTallyPart(beam.DoFn):
    """(place, Sums) in, one file written for each place, (number of the order, number of reports) out.

    A file is written whole or not at all, and only if the side input `allowed` is true.
    """

    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    def process(
        self, element: tuple[TallyPlace, Sums], allowed: bool = True, window: BoundedWindow = beam.DoFn.WindowParam
    ) -> Iterator[tuple[int, int]]:
        ((atom, block), sums), number = element, number_of(window)
        if allowed and (folder := self._folder(number)) is not None:
            storage.write_whole(storage.join(folder, f"{atom:05d}-{block:06d}.part"), [sums.part_bytes()])
            yield number, sums.reports


def gather_sums(mechanism: Mechanism, items: UInt64Array, directory: str) -> dict[int, Sums]:
    """Read the files with parts of tallies that the job wrote, remove these files, and return the sums of each atom.

    Repeats are narrow integers, because most are small and each atom has a million of them.
    """
    rows, found = rows_per_block(mechanism, items), dict[int, Sums]()
    for path, _ in storage.list_files(directory, ".part"):
        atom, block = map(int, path.rpartition("/")[2].removesuffix(".part").split("-"))
        if atom not in found:
            found[atom] = Sums(0, mechanism.new_tally(items), narrowed(new_repeats(mechanism)))
        total = found[atom]
        with storage.open_read(path) as stream:
            part = read_part(stream, rows * total.counts.shape[1])
        total.reports += part.reports
        last = min((first := block * rows) + rows, len(total.counts))
        total.counts[first:last] += part.counts[: last - first]
        total.repeats = narrowed(np.add(total.repeats, part.repeats, dtype=np.int64))
    storage.remove_directory(directory)
    return found
