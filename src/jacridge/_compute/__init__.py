"""Array types, row blocks, threads, memory, progress and files."""
