"""Steps that turn a question into the right nodes: one step a file."""
