"""Small parts under upstream's names."""
