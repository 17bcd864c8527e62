"""Image decoders."""
