"""The half of the probe that runs inside a stranger's interpreter: standard library only, Python 3.10 syntax, never imports the tool."""
