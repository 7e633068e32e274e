"""The gateway to PostgreSQL: engines, transactions, migrations, one function a SQL function."""
