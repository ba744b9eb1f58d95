"""Parts of HTML pages: charts with their tables, text and style. The browser draws a chart from its table."""
