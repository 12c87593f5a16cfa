"""Requests to the model: layers of text from templates in two languages, and their assembly."""
