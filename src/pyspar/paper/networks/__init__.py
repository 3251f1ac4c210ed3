"""The networks of the paper."""
