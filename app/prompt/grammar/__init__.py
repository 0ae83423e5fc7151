"""Grammars that hold answers with tools or a format to the form that was asked for."""
