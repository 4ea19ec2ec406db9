"""Signing in to servers with OAuth 2.1: discovery, authorization, tokens, and where they are stored.

Built of the SDK's functions and models. Its `OAuthClientProvider` is not used: it waits for the person inside a
request, and holds a lock from request to response, so that one slow call blocks all others.
"""
