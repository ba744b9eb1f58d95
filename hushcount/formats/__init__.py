"""Read files that another party wrote: check bounds first, then shape, then content."""
