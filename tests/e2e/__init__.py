"""The main job from outside: processes, sockets, a real model server, files that survive."""
