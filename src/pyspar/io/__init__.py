"""Files: saved models, saved Moments, and atomic writes."""
