"""Five ways to rank, small, pure and named; each keeps its own score scale."""
