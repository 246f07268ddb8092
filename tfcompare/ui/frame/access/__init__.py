"""Who may see what: login, and what each user has uploaded or captured."""
