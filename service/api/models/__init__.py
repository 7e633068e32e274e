"""The shapes of the API: what is given, and what is shown."""
