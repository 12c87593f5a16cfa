"""`duckflow demo`: a tour of two minutes in a temporary folder, with a scripted model."""
