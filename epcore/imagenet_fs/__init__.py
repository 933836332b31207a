"""ImageNet-FS: a cosine classifier of base classes, generated weights of hundreds of novel ones."""
