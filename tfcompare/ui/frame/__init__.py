"""The frame of every page: sidebar, selection, URL, login, and loading of runs."""
