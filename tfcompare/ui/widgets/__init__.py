"""Parts that pages are made of: tables, cards, charts, text."""
