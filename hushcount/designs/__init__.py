"""Balanced designs for Weighted Subset Selection."""
