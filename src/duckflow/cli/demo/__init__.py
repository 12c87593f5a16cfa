"""`duckflow demo`: a tour of two minutes in a temporary folder, with a model that says what it was told to."""
