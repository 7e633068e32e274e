"""ContextForge: hybrid retrieval on PostgreSQL, with true BM25, pgvector and tenants."""

__version__ = "0.1.0"
