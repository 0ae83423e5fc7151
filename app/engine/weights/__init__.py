"""Weights as the GPU reads them: every GGUF block format in its own precision, laid out for wide loads."""
