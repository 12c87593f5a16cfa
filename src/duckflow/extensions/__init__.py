"""Extensions in the formats of other assistants, which users have already: skills, custom commands, hooks, kinds of
agents."""
