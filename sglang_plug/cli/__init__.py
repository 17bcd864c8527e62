"""One file a command: argv, one call into the floors below, a report, an exit code."""
