"""How good the service is on live traffic: what was shown, what people thought, what is tried."""
