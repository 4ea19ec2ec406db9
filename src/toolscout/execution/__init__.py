"""Execution: a key and arguments become one call to a server, checked before it and audited after it."""
