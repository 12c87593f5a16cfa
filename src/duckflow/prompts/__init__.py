"""What is said to the model: templates in two languages, and their assembly."""
