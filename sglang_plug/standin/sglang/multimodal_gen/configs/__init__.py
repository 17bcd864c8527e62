"""What pipelines and requests can be told."""
