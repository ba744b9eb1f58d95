"""Designs that the package ships, one file for each width: data that `hushcount.designs.sources` reads.

Each is `search.search_design(width, size)`: method "cyclic", seed 0, base blocks turned over all cells if the width is
odd and over all except the last if it is even. Sizes are those of least l2 and of least worst-case error at epsilon
0.5, 1, 2, 3 and 4; sizes 1 and 2 and prime widths have no file because `constructed_design` makes them.
"""
