"""What every page has: sidebar, selection, address, login, and the loading of runs."""
