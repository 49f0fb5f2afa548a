"""The rows of the op table, one module a family."""
