"""The papers' experiments as whole protocols, on any models and texts, their published numbers beside ours."""
