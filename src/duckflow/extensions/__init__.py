"""What users have for other assistants already: skills, custom commands, hooks."""
