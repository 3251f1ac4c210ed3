"""The networks of the paper: an MLP for tables, ResNets for images, and stacks of networks."""
