"""Data sets: built once into a packed store, then read by index."""
