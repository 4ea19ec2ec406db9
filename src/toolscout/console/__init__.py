"""The console at `/`: a web page for people, on the REST API, and the sessions that it signs in with."""
