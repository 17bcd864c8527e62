"""The rules of doctor by family: each function takes the world and yields findings of one kind. Pure; the facts are gathered before."""
