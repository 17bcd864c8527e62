"""Doctor and its rules, on fake installations."""
