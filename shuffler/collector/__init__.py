"""The collector: takes sealed reports over HTTP, keeps them in a journal, uploads them as segments (docs/adr/0014).

    app         answers requests
    service     composes the modules below, and does housekeeping once a second
    uploads     carries journals to the store as segments and manifests, and repeats failed uploads
    journals    makes reports durable before they are acknowledged
    windows     the files of each window on the disk, until they are uploaded
    campaigns   the campaigns that are collected now

The code that the collector shares with other HTTP services is in `service/`.

The collector cannot open a report, and stores neither a sender's address nor a user agent.
"""
