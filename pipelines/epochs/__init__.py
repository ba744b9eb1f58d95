"""The next epoch: its dictionary, the review of found values, and the items that a campaign follows."""
