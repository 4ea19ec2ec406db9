"""Scale: many tools and many tenants, in PostgreSQL and in SQLite."""
