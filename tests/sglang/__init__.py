"""Tests that need real SGLang."""
