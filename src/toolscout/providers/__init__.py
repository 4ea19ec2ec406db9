"""Tools that are not live servers."""
