"""The processes of the engine and their messages."""
