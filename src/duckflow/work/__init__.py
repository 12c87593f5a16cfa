"""Jobs, steps and agents: work that goes on beside the conversation. It uses the conversation's turn and dispatcher
(agent/turn.py, agent/dispatcher.py)."""
