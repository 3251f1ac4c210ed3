"""Training of networks: settings, data of an epoch, the loop, checkpoints and results."""
