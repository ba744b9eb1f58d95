"""The campaign file: what every party agrees on, its dictionary and its signatures."""
