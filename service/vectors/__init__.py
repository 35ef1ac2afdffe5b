"""The vector index: meaning beside words. Chroma is a rebuildable cache of the vectors in the table `embeddings`."""
