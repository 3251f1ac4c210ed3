"""Estimators with the scikit-learn interface: fit, adapt and predict."""
