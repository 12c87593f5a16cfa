"""A session as a document: Markdown, or one self-contained HTML page."""
