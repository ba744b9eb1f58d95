"""The streaming job: windows of a collector, each released once when it closes.

Unlike hushcount run it has no state, ledger or list of collectors: manifests alone say when a window closes and what is
in it, and a faulty segment holds up its whole window. It carries nothing over, compares no window with another, and
takes one campaign file; it shuffles discovery reports, and hushcount release and discover read them.
"""
