"""Events: frozen records of what happened, how they change the state, and the ports of the agent."""
