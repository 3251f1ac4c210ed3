"""The chairs: published folder and recreated images."""
