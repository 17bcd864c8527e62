"""Text encoders and tokenizers."""
