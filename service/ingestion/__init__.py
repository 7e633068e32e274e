"""From files, schemas and examples to searchable nodes: read, split, embed, write."""
