"""Vectors where they live: LanceDB, faiss, Qdrant and PostgreSQL with pgvector, read in batches and written back."""
