-- The mean share of an item in a week, each window weighted by its reports.
-- Only for windows with independent errors: if clients repeat answers, or with a pool, use hushcount ask total.
select
    campaign,
    date_trunc('week', window_start) as week,
    item,
    other,
    count(*) as windows,
    sum(reports) as reports,
    sum("count") / sum(reports) as share,
    sqrt(sum(standard_error * standard_error)) / sum(reports) as share_error
from {{ ref('windows') }}
group by campaign, date_trunc('week', window_start), item, other
having bool_and(is_independent)
