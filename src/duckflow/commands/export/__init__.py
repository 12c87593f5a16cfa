"""A session as a document: Markdown, or one HTML page that needs nothing else."""
