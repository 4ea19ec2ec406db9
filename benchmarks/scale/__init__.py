"""Growing past one machine: many tools, many tenants, PostgreSQL and SQLite side by side."""
