"""Building blocks of pages: tables, cards, charts, text."""
