"""Evaluation: measure retrieval on judged questions, compare settings, fit them to a tenant."""
