"""The store to grow on: PostgreSQL with pgvector, shared by any number of replicas."""
