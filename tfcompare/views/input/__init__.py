"""The Input pipeline page."""
