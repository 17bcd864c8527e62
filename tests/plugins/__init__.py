"""Fake installations: real `*.dist-info` directories on `sys.path`, as `pip install --target` would leave them."""
