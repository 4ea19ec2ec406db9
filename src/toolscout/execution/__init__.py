"""Walk 3: key and arguments, the tool, checked arguments, one call, a shaped result."""
