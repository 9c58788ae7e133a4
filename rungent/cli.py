"""The command line: `rungent demo` and `rungent serve`. Source: docs/cli.md.

Exit codes: 0 success, 1 the work failed, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

__all__ = ["main"]

USAGE_ERROR = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; `argv` defaults to the process's own."""
    arguments = _parser().parse_args(argv)
    try:
        return _demo(arguments) if arguments.command == "demo" else _serve(arguments)
    except ModuleNotFoundError as missing:
        # Only the extras of this package can be missing; an application's own imports are its
        # own affair and are reported by the loader.
        print(f"rungent: {missing.name} is not installed; {_EXTRAS}", file=sys.stderr)
        return USAGE_ERROR
    except KeyboardInterrupt:
        return 0


_EXTRAS = "install the extras it needs, for example rungent-trio[demo] or rungent-trio[asgi]"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="rungent", description="An embedded agent runtime.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    demo = commands.add_parser(
        "demo",
        help="run the trip planner example",
        description="Serve the trip planner, or hold one conversation with --once. Without a "
        "model it uses a built-in offline model that understands a few phrases.",
    )
    demo.add_argument("--once", metavar="TEXT", help="send TEXT, show what happens, and exit")
    demo.add_argument("--db", metavar="PATH", help="database file (:memory: keeps nothing)")
    _add_address(demo)
    demo.add_argument("--model-url", metavar="URL", help="base URL of an OpenAI-compatible server")
    demo.add_argument("--model", metavar="NAME", help="model name (or OPENAI_MODEL)")
    demo.add_argument("--api-key", metavar="KEY", help="API key (better: OPENAI_API_KEY)")
    serve = commands.add_parser(
        "serve",
        help="serve an application made with create_app",
        description="Serve MODULE:ATTRIBUTE, an application made with rungent.asgi.create_app.",
    )
    serve.add_argument("app", metavar="MODULE:ATTRIBUTE")
    _add_address(serve)
    serve.add_argument(
        "--graceful-timeout",
        type=float,
        default=5.0,
        metavar="SECONDS",
        help="time for open requests after SIGTERM (default: 5)",
    )
    return parser


def _add_address(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1", help="address to bind (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, default=8000, help="port to bind (default: 8000)")


def _demo(arguments: argparse.Namespace) -> int:
    from rungent.demo.command import DemoOptions, demo

    return demo(
        DemoOptions(
            db=arguments.db,
            host=arguments.host,
            port=arguments.port,
            model_url=arguments.model_url,
            model=arguments.model,
            api_key=arguments.api_key,
            once=arguments.once,
        )
    )


def _serve(arguments: argparse.Namespace) -> int:
    from rungent.asgi.command import run_app

    return run_app(
        arguments.app,
        host=arguments.host,
        port=arguments.port,
        graceful_timeout=arguments.graceful_timeout,
    )
