"""Jobs, steps and agents: work that goes on beside the conversation, through the same turn and dispatcher."""
