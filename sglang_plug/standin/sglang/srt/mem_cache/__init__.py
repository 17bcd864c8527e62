"""The KV cache: who has which token where."""
