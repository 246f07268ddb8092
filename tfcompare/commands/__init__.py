"""One module per command: `SUMMARY`, `EXAMPLES`, `add_arguments(parser)` and `run(arguments) -> exit status`."""
