"""The paper's experiments: published numbers as data, ours beside them."""
