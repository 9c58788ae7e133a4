"""The trip planner: a small host application that shows Rungent at work.

`rungent demo` runs it. It is written as an application would be: its own tables, its own
service, typed tools over that service, one agent, one route of its own.
"""
