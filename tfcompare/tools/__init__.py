"""The data shown by pages and commands, as plain frames."""
