"""The trip planner example."""
