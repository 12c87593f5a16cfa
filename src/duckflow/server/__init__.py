"""A front end for other agents: Duckflow as a server of the Model Context Protocol."""
