"""The collector: takes sealed reports over HTTP, keeps them in a journal, hands them on as segments (docs/adr/0014).

Read in this order: `app`, which answers requests; `writer`, which makes their reports durable before they are
acknowledged; `journal`, the file in which they are; `sealing`, the steps that carry journals to the store; `sealer`,
which does them in order, and again where they fail. It cannot open a report, and writes neither a sender's address nor
a user agent.
"""
