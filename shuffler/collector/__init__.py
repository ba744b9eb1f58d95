"""The collector: takes sealed reports over HTTP, keeps them in a journal, uploads them as segments (docs/adr/0014).

    app         answers requests
    service     puts the rooms below together, and looks after them once a second
    uploads     carries journals to the store as segments and manifests, again where that fails
    journals    makes reports durable before they are acknowledged
    windows     the files that each window has on the disk until they are uploaded
    campaigns   what is collected at present

What it shares with other HTTP services is in `service/`.

It cannot open a report, and writes neither a sender's address nor a user agent.
"""
