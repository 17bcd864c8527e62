"""`check`: rules over a plugin's source. Reads text and metadata; never imports a plugin, a release, or anything that they need."""
