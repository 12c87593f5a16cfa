"""Tools of others, offered by servers of the Model Context Protocol."""
