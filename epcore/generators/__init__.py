"""Generators: class weights for a cosine classifier, made from exemplars and base weights."""
