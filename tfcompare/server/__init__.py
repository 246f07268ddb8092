"""What exists because many users share one server: login, uploads, and which uploads a browser may see."""
