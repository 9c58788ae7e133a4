"""The trip planner's page in a real browser, served by the real application."""
