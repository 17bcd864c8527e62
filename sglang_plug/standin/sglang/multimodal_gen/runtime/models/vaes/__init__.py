"""vaes"""
