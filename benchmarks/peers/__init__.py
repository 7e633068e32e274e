"""Hybrid search of several systems on the same documents, questions and vectors.

Modules that a peer's own interpreter runs (asked, protocol, __main__, and one a peer) import
nothing of the service: that environment need not have it.
"""
