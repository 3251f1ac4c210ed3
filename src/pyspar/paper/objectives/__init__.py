"""The training methods of the paper as objectives: what a training step minimises."""
