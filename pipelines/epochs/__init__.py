"""The next epoch: its dictionary, the review of discovered values, and the items that a campaign follows."""
