"""Serve a GGUF file with llama.cpp's own OpenAI-compatible HTTP server until SIGTERM.

Usage: python serve.py FILE PORT, with API_KEY, N_CTX (tokens, shared by two slots) and PING
(seconds between keep-alive comments) from the environment.
"""

import importlib
import os
import signal
import sys
from typing import Any


def main(path: str, port: int) -> None:
    # By name, because the compiled module has no types.
    xllamacpp: Any = importlib.import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = path
    params.port = port
    params.n_ctx = int(os.environ.get("N_CTX", "8192"))
    params.n_parallel = 2
    params.cpuparams.n_threads = 2
    params.use_jinja = True
    params.n_gpu_layers = 0
    params.warmup = False
    params.sampling.seed = 7
    params.sampling.temp = 0.0
    if "API_KEY" in os.environ:
        params.api_keys = [os.environ["API_KEY"]]
    if "PING" in os.environ:
        params.sse_ping_interval = int(os.environ["PING"])
    server = xllamacpp.Server(params)
    print("READY", server.listening_address, flush=True)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
