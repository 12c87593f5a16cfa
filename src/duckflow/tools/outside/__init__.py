"""Tools that are not part of Duckflow, offered by servers of the Model Context Protocol."""
