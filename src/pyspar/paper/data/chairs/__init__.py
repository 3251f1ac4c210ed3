"""ChairAngles-Tails: the published data set, and a re-creation that is rendered from free furniture models."""
