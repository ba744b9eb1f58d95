"""Reading what another party wrote: bounds first, then shape, then content."""
