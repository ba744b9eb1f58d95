-- A window has one file for each epoch. No report is in two of them, and their errors are independent.
select
    campaign,
    window_start,
    item,
    other,
    sum(reports) as reports,
    sum("count") as "count",
    sqrt(sum(variance)) as standard_error,
    sum("count") / sum(reports) as share,
    sqrt(sum(variance)) / sum(reports) as share_error,
    bool_and(not repeated and not pool) as is_independent
from {{ source('hushcount', 'estimates') }}
group by campaign, window_start, item, other
