"""The ways in: HTTP server and offline engine."""
