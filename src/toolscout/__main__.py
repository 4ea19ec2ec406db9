"""`python -m toolscout` is the `toolscout` command."""

from __future__ import annotations

from toolscout.cli.app import main

if __name__ == "__main__":
    main()
