"""A published generation in memory: vectors, words, facets and definitions. Access is filtered inside the search."""
