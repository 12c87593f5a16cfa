"""Tools of others: servers of the Model Context Protocol."""
