"""The HTML report: tables, sections, the page."""
