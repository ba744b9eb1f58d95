"""What the project's HTTP services have in common: the collector and the evaluator stand on it (docs/adr/0035).

    server             listens, answers until a signal comes, and stops
    application        tells whether a service is ready and its metrics; counts and answers refusals
    connection_limits  bounds what a connection may cost
    exchange           reads requests and writes answers: headers, bodies, problems, CORS
    authentication     who may send, and what tells clients apart
    client_limit       how much one client may do in a window
    campaign_folders   the directory of campaigns, read again when a file there changes
    epochs             which campaign file a request may name now
    cors               which pages of other origins may ask
    store              what a service does with the store
    threads            waits for threads, also when cancelled
    window_folders     folders of windows on the local disk, under a lock
    window_notes       small files about each window: key, id, length, the newest that ended
    refusals, settings, metrics, logs

It is no trust domain: it opens no report, holds no key of a party, and knows no party.
"""
