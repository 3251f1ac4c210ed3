"""The estimators: what happens in fit, adapt and predict."""
