"""The evaluator: evaluates blinded elements with the key of an epoch, and counts them (docs/adr/0035).

    app        answers requests
    evaluator  composes the modules below, and does housekeeping twice a second
    uploads    carries the counts of windows that ended to the store, as manifests
    counting   keeps the counts of the present window on the disk, and enforces the limits
    keys_here  the private keys of a key directory, open while their files are there
    campaigns  the campaign files that clients may ask about now
    manifests, refusals, settings, metrics

The evaluator sees who asks and for how many evaluations, but no value, because elements are blinded. The evaluator
stores no element, output or address.
"""
