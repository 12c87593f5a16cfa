"""Memory: the parts of past conversations that go into a prompt."""
