"""One published generation in memory: vectors, words, facets and definitions, filtered inside the search."""
