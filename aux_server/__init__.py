"""The auxiliary server: opens its own layer, counts equal pairs, releases the sealed value of each kept bin.

The auxiliary server sees neither a value nor a sender. Read in this order: `open_pairs`, `bins`, `count_bins`, `keep`.
"""
