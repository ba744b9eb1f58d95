"""Parts of pages for people: charts with their tables, text, style."""
