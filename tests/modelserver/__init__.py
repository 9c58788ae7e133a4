"""A real model server with scripted replies: llama.cpp and a tiny model that follows a table."""
