"""Questions, approvals, continuations and deferred work."""
