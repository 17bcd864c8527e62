"""The processes of the engine. Importing this package imports none of them."""
