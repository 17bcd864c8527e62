"""Groups of ranks and how they exchange tensors."""
