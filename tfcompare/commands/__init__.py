"""One module a command: `SUMMARY`, `EXAMPLES`, `add_arguments(parser)` and `run(arguments) -> exit status`."""
