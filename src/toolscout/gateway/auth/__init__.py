"""Who is asking over HTTP: API keys and OAuth access tokens, verified before anything else is done."""
