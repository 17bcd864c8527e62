"""The engine and the interfaces that plugins meet."""
