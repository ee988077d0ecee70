"""The demo: a small company's mail on real parts: a database, workers, the dashboard, a provider that misbehaves."""
