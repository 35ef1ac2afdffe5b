"""Loops over the core: they claim, compress, store and tidy, and never speak HTTP to clients."""
