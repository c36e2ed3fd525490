"""Prices of tokens by model and date, and cost calculation."""
