"""The five rankers. Each is a pure function with a score scale of its own."""
