"""A model of what a run assumes of the world: actions that make it false, and the promises that must hold."""
