"""Designs that are shipped, one file for each width; they are data, and `hushcount.designs.sources` reads them.

Each is `design_search.search_design(width, size)`: method "cyclic", seed 0, base blocks turned over all cells where the
width is odd and over all but the last where it is even. Sizes are those of least l2 and of least worst-case error at
epsilon 0.5, 1, 2, 3 and 4; sizes 1 and 2 and prime widths have no file because `constructed_design` makes them.
"""
