"""hushcount ask change and compare: what rose and fell between windows, and where two campaigns differ."""

from __future__ import annotations

from pathlib import Path

from hushcount.errors import UsageError
from pipelines.asking import options
from pipelines.console.answer import Answer


def change(
    campaign: options.Campaigns,
    config: options.Config = None,
    result: options.Results = None,
    item: options.Item = None,
    group: options.Declared = None,
    glob: options.Glob = None,
    prefix: options.Prefix = None,
    file: options.ItemFile = None,
    by_prefix: options.ByPrefix = None,
    depth: options.Depth = 1,
    from_right: options.FromRight = False,
    before: options.From = None,
    after: options.To = None,
    last: options.Windows = 1,
    against: options.Against = None,
    show: options.Show = 10,
    out: options.OutTable = None,
) -> Answer:
    """Use it to learn what rose and what fell, and whether chance explains it; without a choice, of all items.

    Of two --result the first one is before.

    Example: hushcount ask change --config deployment.toml --campaign settings --last 7
    """
    from pipelines.asking import answers, sides
    from pipelines.asking.groups import Chosen

    answers.require_free(out)
    chosen = Chosen.of(item, group, glob, prefix, file, False, by_prefix, depth, from_right)
    if result:
        answers.require_folders(config)
        if before is not None or after is not None or last != 1 or against is not None:
            raise UsageError(
                "--from, --to, --last and --against choose windows of a store: leave them out with --result"
            )
        return answers.difference("change", sides.of_folders(list(map(Path, campaign)), result), chosen, show, out)
    both = sides.of_windows(answers.source_of(config, campaign, None), before, after, last, against)
    return answers.difference("change", both, chosen, show, out)


def compare(
    campaign: options.Campaigns,
    config: options.Config = None,
    result: options.Results = None,
    item: options.Item = None,
    group: options.Declared = None,
    glob: options.Glob = None,
    prefix: options.Prefix = None,
    file: options.ItemFile = None,
    by_prefix: options.ByPrefix = None,
    depth: options.Depth = 1,
    from_right: options.FromRight = False,
    window: options.Window = None,
    last: options.Windows = 1,
    show: options.Show = 10,
    out: options.OutTable = None,
) -> Answer:
    """Use it for two campaigns, such as platforms, or two results: where do items differ that both know?

    Example: hushcount ask compare --config deployment.toml --campaign ios --campaign android
    """
    from pipelines.asking import answers, sides
    from pipelines.asking.groups import Chosen

    answers.require_free(out)
    chosen = Chosen.of(item, group, glob, prefix, file, False, by_prefix, depth, from_right)
    if result:
        answers.require_folders(config)
        if window is not None or last != 1:
            raise UsageError("--window and --last choose windows of a store: leave them out with --result")
        both = sides.of_folders(list(map(Path, campaign)), result)
    else:
        both = sides.of_campaigns(answers.deployment_of(config), campaign, last, window)
    return answers.difference("compare", both, chosen, show, out)
