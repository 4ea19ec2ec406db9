"""Walk 2: query and caller, intents, filtered candidates, scores, a shaped answer. Pure and synchronous."""
