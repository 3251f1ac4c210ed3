"""The command line ``spar``."""
