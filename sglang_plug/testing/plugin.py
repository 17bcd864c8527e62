"""The pytest plugin for plugin authors: inert unless one of its fixtures is used."""
