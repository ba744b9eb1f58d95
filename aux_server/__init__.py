"""The auxiliary server: opens its own layer, counts by hash, releases a few sealed values of each kept bin.

It sees neither a value nor a sender. Read in this order: `open_pairs`, `bins`, `count_bins`, `keep`.
"""
