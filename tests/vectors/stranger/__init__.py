"""A client's arithmetic written from docs/wire-format.md alone: it imports nothing of this project.

It reads the vectors as the author of the next client will, slowly and plainly. `Refused` carries the reason's name.
"""
