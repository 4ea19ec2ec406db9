"""The `toolscout` command: one file for each verb."""
