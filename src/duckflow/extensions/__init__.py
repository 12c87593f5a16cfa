"""Extensions (skills, custom commands, hooks, kinds of agents) in the formats of other assistants, because users
already have such files."""
