"""``spar demo``: forecast, adapt and correct with a few labels on real data; compare forecasts with true errors."""
