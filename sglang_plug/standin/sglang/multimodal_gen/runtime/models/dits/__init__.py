"""dits"""
