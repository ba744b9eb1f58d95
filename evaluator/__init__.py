"""The evaluator: evaluates blinded elements with the key of an epoch, and counts them (docs/adr/0035).

    app        answers requests
    evaluator  puts the modules below together, and looks after them twice a second
    store      carries the counts of windows that ended to the store, as manifests
    counting   keeps the counts of the present window on the disk, and holds the limits
    keys_here  the private keys of a key directory, opened while they are there
    campaigns  which campaign files may be asked about now
    manifests, refusals, settings, metrics

It sees who asks and how much, never what about: an element is blinded, and no element, output or address is written.
"""
