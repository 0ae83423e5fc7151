"""Numbers of network ports, apart from all else: the command line reads them before anything is loaded."""

HIGHEST_PORT = 65_535
API_PORT = 8_080
"""Where tools look for an API on this computer."""
