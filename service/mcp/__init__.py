"""The MCP edge: what a tenant knows, as tools for language models."""
