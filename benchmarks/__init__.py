"""Measurements: ratios from one run on one machine, against baselines measured beside them."""
