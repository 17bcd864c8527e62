"""OpenAI's HTTP interfaces."""
