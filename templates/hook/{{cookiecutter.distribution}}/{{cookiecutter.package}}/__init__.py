"""A hook for SGLang. Imports nothing: SGLang loads the entry point's module while it is starting."""
