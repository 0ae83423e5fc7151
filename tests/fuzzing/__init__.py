"""Bytes that nobody sends on purpose, and what every decoder may make of them."""
