"""The common code of the project's HTTP services, the collector and the evaluator (docs/adr/0035).

    server             listens, answers until a signal comes, and stops
    application        answers health, readiness and metrics requests; counts and answers refusals
    connection_limits  bounds time, bytes and number of connections
    exchange           reads requests and writes answers: headers, bodies, problems, CORS
    authentication     decides who may send, and tells clients apart
    client_limit       limits how much one client may do in a window
    campaign_folders   the directory of campaigns, read again when a file there changes
    epochs             the campaign files that a request may name now
    cors               the web pages of other origins that may send requests
    store              the type of the function that writes to the store
    threads            waits for threads, also when cancelled
    window_folders     folders of windows on the local disk, under a lock
    window_notes       small files about each window: key, id, length, the newest that ended
    refusals, settings, metrics, logs

This folder is not a trust domain: its code opens no report, holds no party's key, and imports no party's code.
"""
