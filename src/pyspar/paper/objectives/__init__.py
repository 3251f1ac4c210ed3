"""The training methods of the paper."""
