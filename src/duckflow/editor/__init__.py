"""The front end for editors: the Agent Client Protocol (ACP) on stdin and stdout."""
