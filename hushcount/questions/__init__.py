"""Questions to counted results: the total of a group, changes, differences, and how certain they are."""
