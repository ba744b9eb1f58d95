"""hushcount ask: questions on numbers: means, quantiles and histograms."""

from __future__ import annotations

from pipelines.console import options
from pipelines.console.answer import Answer


def mean(
    campaign: options.Campaigns = None,
    config: options.Config = options.HERE,
    result: options.Results = None,
    together: options.Together = False,
    last: options.LastAsked = None,
    window: options.Window = None,
    first: options.RangeFrom = None,
    end: options.RangeTo = None,
    month: options.Month = None,
    by: options.By = None,
    where: options.Coordinates = None,
    out: options.OutTable = None,
) -> Answer:
    """Use it for numbers: the mean of each window with its interval, and how it changed.

    Example: hushcount ask mean --last 7
    """
    from pipelines.questions import answer_tables, answers, number_sentences, sentences
    from pipelines.questions.breakdown import Breakdown
    from pipelines.questions.numbers import mean_table
    from pipelines.questions.spans import Span

    answers.require_free(out)
    source = answers.source_of(config, campaign, result, Span(last, window, first, end, month))
    of = Breakdown.of(by, where)
    table = mean_table(of.parts(source.counted, together=together))
    says = [
        *number_sentences.of_means(source, table),
        *number_sentences.of_where(of),
        *of.lost(source.counted),
        *sentences.of_results(source.counted, source.zone),
    ]
    return answers.answer("mean", [source], table, [answer_tables.means(source, table)], says, out)


def quantile(
    campaign: options.Campaigns = None,
    config: options.Config = options.HERE,
    result: options.Results = None,
    at: options.At = "50%,90%,99%",
    together: options.Together = False,
    last: options.LastAsked = None,
    window: options.Window = None,
    first: options.RangeFrom = None,
    end: options.RangeTo = None,
    month: options.Month = None,
    by: options.By = None,
    where: options.Coordinates = None,
    edges: options.EdgesOut = None,
    out: options.OutTable = None,
) -> Answer:
    """Use it for numbers: the median and other percentiles of each window, with intervals.

    With --edges it also writes a file for hushcount campaign new --after FILE --bins: with the next epoch's bins these
    intervals become narrower. It takes all windows with the newest bins together.

    Example: hushcount ask quantile --at 50%,99% --last 7
    """
    from hushcount.formats.whole_files import write_once
    from pipelines.questions import answer_tables, answers, number_sentences, sentences
    from pipelines.questions.breakdown import Breakdown
    from pipelines.questions.numbers import edges_of_next_epoch, quantile_table
    from pipelines.questions.spans import Span

    answers.require_free(out)
    shares = [options.share_of(one, "at") for one in at.split(",")]
    source = answers.source_of(config, campaign, result, Span(last, window, first, end, month))
    of = Breakdown.of(by, where)
    table = quantile_table(of.parts(source.counted, together=together), shares)
    says = [
        *number_sentences.of_quantiles(table),
        *number_sentences.of_cells(of, source),
        *number_sentences.of_numbers(source),
        *number_sentences.of_where(of),
        *of.lost(source.counted),
        *sentences.of_results(source.counted, source.zone),
    ]
    if edges is not None:
        made = edges_of_next_epoch(of.parts(source.counted), shares)
        write_once(edges, "file of edges", "\n".join(made) + "\n")
        says.append(f"{edges} has {len(made)} edges: hushcount campaign new --after CAMPAIGN.json --bins {edges}")
    return answers.answer("quantile", [source], table, [answer_tables.quantiles(source, table)], says, out)


def histogram(
    campaign: options.Campaigns = None,
    config: options.Config = options.HERE,
    result: options.Results = None,
    last: options.LastAdded = None,
    window: options.Window = None,
    first: options.RangeFrom = None,
    end: options.RangeTo = None,
    month: options.Month = None,
    by: options.By = None,
    where: options.Coordinates = None,
    out: options.OutTable = None,
) -> Answer:
    """Use it for numbers: how many reports are in each bin, of the newest window or added up over several.

    Example: hushcount ask histogram --last 7
    """
    from pipelines.questions import answer_tables, answers, number_sentences, sentences
    from pipelines.questions.breakdown import Breakdown
    from pipelines.questions.numbers import bin_groups, histogram_table
    from pipelines.questions.spans import Span

    answers.require_free(out)
    source = answers.source_of(config, campaign, result, Span(last, window, first, end, month), usual=1)
    of = Breakdown.of(by, where)
    groups = bin_groups(source.counted, of)
    table = of.columns(histogram_table(source.counted, groups), groups, "bin")
    title = f"{answer_tables.title_of(source)}: counts ± errors of all bins"
    says = [
        sentences.of_totals(table.num_rows),
        *number_sentences.of_numbers(source),
        *of.words(source.counted, groups),
        *sentences.of_other(source.counted),
        *sentences.of_results(source.counted, source.zone),
    ]
    return answers.answer("histogram", [source], table, answer_tables.histograms(title, table), says, out)
