"""hushcount ask: query results for the counts of items and groups of items, for changes of counts, and for errors."""

from __future__ import annotations

from hushcount.errors import UsageError
from pipelines.console import options
from pipelines.console.answer import Answer


def top(
    campaign: options.Campaigns = None,
    config: options.Config = options.HERE,
    result: options.Results = None,
    window: options.Window = None,
    last: options.LastAdded = None,
    first: options.RangeFrom = None,
    end: options.RangeTo = None,
    month: options.Month = None,
    population: options.Population = None,
    by: options.By = None,
    where: options.Coordinates = None,
    show: options.Show = 10,
    out: options.OutTable = None,
) -> Answer:
    """Use it to see the most frequent detected items, of the newest window or added up over several.

    Example: hushcount ask top --last 7
    """
    from pipelines.questions import answer_tables, answers, sentences
    from pipelines.questions.breakdown import Breakdown
    from pipelines.questions.items import item_groups, top_table
    from pipelines.questions.spans import NEWEST, Span
    from pipelines.questions.sums import top_totals

    answers.require_free(out)
    of, span = Breakdown.of(by, where), Span(last, window, first, end, month)
    source = answers.source_of(config, campaign, result, span, usual=1)
    if span == NEWEST:
        source = source.of(source.windows[-1:])
    table = top_table(source, of=of) if len(source.windows) == 1 else top_totals(source, of=of)
    groups = item_groups(source, of=of)
    looks = sentences.looks_of_top(source, of)
    table, seen, extended = answers.extended(table, source, groups, looks, of, population, named=False)
    says = [
        *extended,
        *sentences.of_top(source, table, show, of),
        *sentences.of_found(source, table),
        *of.words(source.counted, groups),
        *sentences.of_results(source.counted, source.zone),
    ]
    people = answer_tables.top(source, seen, show)
    return answers.answer("top", [source], of.columns(table, groups, "item"), people, says, out)


def item(
    campaign: options.Campaigns = None,
    config: options.Config = options.HERE,
    result: options.Results = None,
    item: options.Item = None,
    last: options.LastAsked = None,
    window: options.Window = None,
    first: options.RangeFrom = None,
    end: options.RangeTo = None,
    month: options.Month = None,
    population: options.Population = None,
    by: options.By = None,
    where: options.Coordinates = None,
    show: options.Show = 10,
    out: options.OutTable = None,
    plot: options.Plot = None,
) -> Answer:
    """Use it to follow items over windows; without --item, the items that are detected in any of them.

    Example: hushcount ask item --item dark-mode --plot dark-mode.png
    """
    from pipelines.console.pictures import require_pictures
    from pipelines.questions import answer_tables, answers, sentences
    from pipelines.questions.breakdown import Breakdown
    from pipelines.questions.items import item_groups, items_table, most_frequent
    from pipelines.questions.plot import write_plot
    from pipelines.questions.spans import Span

    answers.require_free(out)
    if plot is not None:
        require_pictures("--plot")
    source = answers.source_of(config, campaign, result, Span(last, window, first, end, month))
    of = Breakdown.of(by, where)
    table, groups = items_table(source, item or (), of=of), item_groups(source, item or (), of)
    shown = ([group.name for group in groups] if item else most_frequent(table))[:show]
    table, seen, extended = answers.extended(
        table, source, groups, table.num_rows, of, population, named=item is not None
    )
    if plot is not None:
        write_plot(plot, seen, shown, source.ends)
    says = [
        *extended,
        *sentences.of_items(table, shown, of_all=not item),
        *(sentences.of_cut(show, len(groups)) if item else ()),
        *of.words(source.counted, groups),
        *sentences.of_results(source.counted, source.zone),
    ]
    charts = answer_tables.trends(answer_tables.title_of(source), seen, shown)
    people = [*charts, *answer_tables.over_windows(source, seen, shown)]
    return answers.answer("item", [source], of.columns(table, groups, "item"), people, says, out)


def sum_(
    campaign: options.Campaigns = None,
    config: options.Config = options.HERE,
    result: options.Results = None,
    item: options.Item = None,
    group: options.Declared = None,
    glob: options.Glob = None,
    prefix: options.Prefix = None,
    file: options.ItemFile = None,
    everything: options.All = False,
    by_prefix: options.ByPrefix = None,
    depth: options.Depth = 1,
    from_right: options.FromRight = False,
    last: options.LastAsked = None,
    window: options.Window = None,
    first: options.RangeFrom = None,
    end: options.RangeTo = None,
    month: options.Month = None,
    population: options.Population = None,
    by: options.By = None,
    where: options.Coordinates = None,
    show: options.Show = 10,
    out: options.OutTable = None,
) -> Answer:
    """Use it for items that count as one thing: it adds up all --item, and shows the error of the sum.

    Example: hushcount ask sum --item dark-mode --item night-mode
    """
    from pipelines.questions import answer_tables, answers, sentences
    from pipelines.questions.breakdown import Breakdown
    from pipelines.questions.selection import Chosen, all_reports, read_groups
    from pipelines.questions.spans import Span
    from pipelines.questions.sums import largest_groups, sums_table

    answers.require_free(out)
    source = answers.source_of(config, campaign, result, Span(last, window, first, end, month))
    chosen = Chosen.of(item, group, glob, prefix, file, everything, by_prefix, depth, from_right)
    of, is_whole = Breakdown.of(by, where), chosen.is_nothing and by_prefix is None
    if is_whole and of.is_whole:
        raise UsageError("nothing to sum: give --item, --group, --glob, --prefix, --file, --all, --by-prefix or --by")
    summed = [all_reports(source)] if is_whole else read_groups([source], chosen, together=True)
    groups = of.groups(summed, source.counted)
    table = sums_table(source.counted, groups)
    table, seen, extended = answers.extended(table, source, groups, table.num_rows, of, population, named=True)
    chief = set(largest_groups(table)[:show])
    # If the groups are a tree of paths, show the largest nodes in the order of the tree.
    names = [one.name for one in groups if by_prefix is None or one.name in chief][:show]
    says = [
        *extended,
        *sentences.of_sums(table, len(groups), names, of_paths=by_prefix is not None),
        sentences.of_looks(table.num_rows, are_shown=False),
        *of.words(source.counted, groups),
        *sentences.of_results(source.counted, source.zone),
    ]
    people = answer_tables.over_windows(source, seen, names, "group")
    return answers.answer("sum", [source], of.columns(table, groups, "group"), people, says, out)


def total(
    campaign: options.Campaigns = None,
    config: options.Config = options.HERE,
    result: options.Results = None,
    item: options.Item = None,
    group: options.Declared = None,
    glob: options.Glob = None,
    prefix: options.Prefix = None,
    file: options.ItemFile = None,
    everything: options.All = False,
    by_prefix: options.ByPrefix = None,
    depth: options.Depth = 1,
    from_right: options.FromRight = False,
    last: options.LastAsked = None,
    window: options.Window = None,
    first: options.RangeFrom = None,
    end: options.RangeTo = None,
    month: options.Month = None,
    population: options.Population = None,
    by: options.By = None,
    where: options.Coordinates = None,
    show: options.Show = 10,
    out: options.OutTable = None,
) -> Answer:
    """Use it for a month: the total over windows, with its error; of each item if you choose none.

    Example: hushcount ask total --month 2026-12 --item dark-mode
    """
    from pipelines.questions import answer_tables, answers, sentences
    from pipelines.questions.breakdown import Breakdown
    from pipelines.questions.findings import findings
    from pipelines.questions.selection import Chosen
    from pipelines.questions.spans import Span
    from pipelines.questions.sums import totals_table

    answers.require_free(out)
    source = answers.source_of(config, campaign, result, Span(last, window, first, end, month))
    chosen = Chosen.of(item, group, glob, prefix, file, everything, by_prefix, depth, from_right)
    of = Breakdown.of(by, where)
    groups, left_out = answers.groups_of([source], chosen, of)
    table = totals_table(source.counted, groups)
    if not chosen.names:
        table = table.sort_by([("count", "descending"), ("group", "ascending")])
    table, people_table, extended = answers.extended(
        table, source, groups, len(groups), of, population, named=chosen.names
    )
    seen = findings(people_table.to_pylist(), [one.name for one in groups] if chosen.names else (), "group")
    title = f"{answer_tables.title_of(source)}: totals ± errors"
    says = [
        *extended,
        *sentences.of_cut(show, len(seen)),
        *([] if seen else sentences.of_nothing(source, of)),
        sentences.of_totals(len(groups)),
        *([] if chosen.names else sentences.of_found(source, table)),
        *left_out,
        *of.words(source.counted, groups),
        *sentences.of_results(source.counted, source.zone),
    ]
    people = [answer_tables.largest(title, seen[:show], "group") if seen else f"{title}: no item is detected"]
    return answers.answer("total", [source], of.columns(table, groups, "group"), people, says, out)


def new(
    config: options.Config = options.HERE,
    campaign: options.CampaignId = None,
    last: options.LastAsked = None,
    window: options.Window = None,
    first: options.RangeFrom = None,
    end: options.RangeTo = None,
    month: options.Month = None,
    show: options.Show = 10,
    out: options.OutTable = None,
) -> Answer:
    """Use it to see discovered values, when each was found, and its counts since then. Strangers may have sent them.

    Example: hushcount ask new
    """
    from pipelines.questions import answer_tables, answers, sentences
    from pipelines.questions.new import new_table
    from pipelines.questions.spans import Span

    answers.require_free(out)
    source = answers.source_of(config, campaign and [campaign], None, Span(last, window, first, end, month))
    table = new_table(source)
    newest = list({row["item"]: row for row in table.to_pylist()}.values())
    title = f"{source.name}: {len(newest):,} discovered {'value' if len(newest) == 1 else 'values'}, the newest first"
    says = [
        *sentences.of_cut(show, len(newest)),
        *sentences.of_new(source, table),
        *sentences.of_results(source.counted, source.zone),
    ]
    return answers.answer("new", [source], table, [answer_tables.discovered(source, title, newest[:show])], says, out)


def change(
    campaign: options.Campaigns = None,
    config: options.Config = options.HERE,
    result: options.Results = None,
    item: options.Item = None,
    group: options.Declared = None,
    glob: options.Glob = None,
    prefix: options.Prefix = None,
    file: options.ItemFile = None,
    by_prefix: options.ByPrefix = None,
    depth: options.Depth = 1,
    from_right: options.FromRight = False,
    last: options.LastAdded = None,
    window: options.Window = None,
    first: options.RangeFrom = None,
    end: options.RangeTo = None,
    month: options.Month = None,
    against: options.Against = None,
    by: options.By = None,
    where: options.Coordinates = None,
    show: options.Show = 10,
    out: options.OutTable = None,
) -> Answer:
    """Use it to see rises and falls, and whether chance explains them; of all items if you choose none.

    With two --result, the first is the side before.

    Example: hushcount ask change --last 7
    """
    from pipelines.questions import answers, sides
    from pipelines.questions.breakdown import Breakdown
    from pipelines.questions.selection import Chosen
    from pipelines.questions.spans import NEWEST, Span, against_of

    answers.require_free(out)
    chosen = Chosen.of(item, group, glob, prefix, file, False, by_prefix, depth, from_right)
    of = Breakdown.of(by, where)
    span = Span(last, window, first, end, month)
    if result:
        if span != NEWEST or against is not None:
            raise UsageError(
                "--last, --window, --from, --to, --month and --against choose windows of a store: leave them out with "
                "--result"
            )
        return answers.difference("change", sides.of_folders(campaign, result), chosen, show, out, of)
    both = sides.of_windows(answers.source_of(config, campaign, None, usual=None), span, against_of(against))
    return answers.difference("change", both, chosen, show, out, of)


def compare(
    campaign: options.Campaigns = None,
    config: options.Config = options.HERE,
    result: options.Results = None,
    item: options.Item = None,
    group: options.Declared = None,
    glob: options.Glob = None,
    prefix: options.Prefix = None,
    file: options.ItemFile = None,
    by_prefix: options.ByPrefix = None,
    depth: options.Depth = 1,
    from_right: options.FromRight = False,
    last: options.LastAdded = None,
    window: options.Window = None,
    first: options.RangeFrom = None,
    end: options.RangeTo = None,
    month: options.Month = None,
    by: options.By = None,
    where: options.Coordinates = None,
    against: options.OtherCoordinates = None,
    show: options.Show = 10,
    out: options.OutTable = None,
) -> Answer:
    """Use it to compare two campaigns, such as platforms, or two results, in the items that both know; or two strata.

    Example: hushcount ask compare --config deployment.toml --campaign ios --campaign android
    """
    from pipelines.deployment.settings import Deployment
    from pipelines.questions import answers, sides
    from pipelines.questions.breakdown import Breakdown
    from pipelines.questions.selection import Chosen
    from pipelines.questions.spans import NEWEST, Span
    from pipelines.questions.stratum_changes import StratumSides

    answers.require_free(out)
    chosen = Chosen.of(item, group, glob, prefix, file, False, by_prefix, depth, from_right)
    of = Breakdown.of(by, where)
    span = Span(last, window, first, end, month)
    if against is not None:
        strata = StratumSides.of(of, options.coordinates("--against", against))
        return answers.stratum_difference(
            answers.source_of(config, campaign, result, span, usual=1), strata, chosen, show, out
        )
    if result:
        if span != NEWEST:
            raise UsageError(
                "--last, --window, --from, --to and --month choose windows of a store: leave them out with --result"
            )
        both = sides.of_folders(campaign, result)
    else:
        both = sides.of_campaigns(Deployment.read(config), campaign or (), span)
    return answers.difference("compare", both, chosen, show, out, of)
