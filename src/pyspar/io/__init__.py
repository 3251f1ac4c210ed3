"""Files of our own: models, Moments, atomic writes."""
