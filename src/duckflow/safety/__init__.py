"""What keeps the user's things safe: paths, risk, policy, and the Gate's question."""
