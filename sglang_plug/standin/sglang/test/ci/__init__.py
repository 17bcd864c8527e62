"""Marks that SGLang's continuous integration reads out of test files."""
