"""``spar demo``: forecasts, repair and a few labels on one real data set, each claim compared with the truth."""
