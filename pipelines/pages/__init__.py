"""Parts of pages for people: charts with their tables, text, style. A chart is drawn in the browser, from its table."""
