"""device_communicators"""
