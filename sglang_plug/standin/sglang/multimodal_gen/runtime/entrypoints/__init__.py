"""Ways in: a script, a command, HTTP."""
