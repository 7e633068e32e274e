"""From a packed context to an answer that can be checked: by Claude, or by its own sentences."""
