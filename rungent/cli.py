"""The command line: `rungent demo`, `serve`, `verify`, `db` and those for tests. Source: docs/cli.md.

Exit codes: 0 success, 1 the work failed, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import fields

from rungent.testing_commands import add_testing_commands

__all__ = ["main"]

USAGE_ERROR = 2
INTERRUPTED = 130
MAX_PORT = 65_535
URL_VARIABLE = "RUNGENT_DATABASE_URL"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; `argv` defaults to the process's own."""
    given = sys.argv[1:] if argv is None else argv
    if any(_is_garbled(argument) for argument in given):
        print("rungent: an argument is not valid UTF-8", file=sys.stderr)
        return USAGE_ERROR
    arguments = _parser().parse_args(given)
    try:
        command: Callable[[argparse.Namespace], int] = arguments.run
        return command(arguments)
    except ModuleNotFoundError as missing:
        # Only the extras of this package can be missing; an application's own imports are its
        # own affair and are reported by the loader.
        print(f"rungent: {missing.name} is not installed; {_EXTRAS}", file=sys.stderr)
        return USAGE_ERROR
    except KeyboardInterrupt:
        # A server that is told to stop has done its work; anything else has not.
        return 0 if arguments.command == "serve" else INTERRUPTED


_EXTRAS = "install the extras it needs, for example rungent-trio[demo] or rungent-trio[postgres]"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="rungent", description="An embedded agent runtime.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_demo(
        commands.add_parser(
            "demo",
            help="run the trip planner example",
            description="Serve the trip planner, or hold one conversation with --once. Without a "
            "model it uses a built-in offline model that understands a few phrases.",
        )
    )
    _add_serve(
        commands.add_parser(
            "serve",
            help="serve an application made with create_app",
            description="Serve MODULE:ATTRIBUTE, an application made with rungent.asgi.create_app.",
        )
    )
    _add_verify(
        commands.add_parser(
            "verify",
            help="check what is stored of runs",
            description="Check the logs of runs, and the rows and messages that go with them. "
            "Names the first violation of each run.",
        )
    )
    _add_db(commands.add_parser("db", help="look after a database"))
    add_testing_commands(commands)
    return parser


def _add_demo(demo: argparse.ArgumentParser) -> None:
    demo.set_defaults(run=_demo)
    demo.add_argument("--once", metavar="TEXT", help="send TEXT, show what happens, and exit")
    demo.add_argument("--db", metavar="PATH", help="database file (:memory: keeps nothing)")
    _add_address(demo)
    demo.add_argument("--model-url", metavar="URL", help="base URL of an OpenAI-compatible server")
    demo.add_argument("--model", metavar="NAME", help="model name (or OPENAI_MODEL)")
    demo.add_argument("--api-key", metavar="KEY", help="API key (better: OPENAI_API_KEY)")


def _add_serve(serve: argparse.ArgumentParser) -> None:
    serve.set_defaults(run=_serve)
    serve.add_argument("app", metavar="MODULE:ATTRIBUTE")
    _add_address(serve)
    serve.add_argument(
        "--graceful-timeout",
        type=_seconds,
        default=5.0,
        metavar="SECONDS",
        help="time for open requests after SIGTERM (default: 5)",
    )
    serve.add_argument(
        "--write-timeout",
        type=_seconds,
        default=20.0,
        metavar="SECONDS",
        help="time after which a client that stopped reading is cut off (default: 20)",
    )
    serve.add_argument(
        "--workers",
        type=_positive,
        default=1,
        metavar="N",
        help="processes that share the address; their stores must be one database (default: 1)",
    )
    _add_tls(serve)
    serve.add_argument(
        "--keepalive",
        type=_seconds,
        metavar="SECONDS",
        help="longest silence of an event stream (default: the application's, 15)",
    )
    serve.add_argument(
        "--padding",
        type=int,
        metavar="BYTES",
        help="comment after the start of an event stream and each keep-alive, for proxies that "
        "hold back less (default: the application's, none)",
    )
    serve.add_argument(
        "--log-format",
        choices=("text", "json"),
        help="how log lines look (default: text, or as the application has set it up)",
    )
    serve.add_argument(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        default="info",
        help="what is logged (default: info)",
    )
    # How a worker gets the socket of its parent; not for people.
    serve.add_argument("--fd", type=int, help=argparse.SUPPRESS)


def _add_tls(serve: argparse.ArgumentParser) -> None:
    serve.add_argument("--certfile", metavar="PATH", help="PEM file of a certificate: HTTPS")
    serve.add_argument("--keyfile", metavar="PATH", help="PEM file of its key, if another one")
    serve.add_argument(
        "--client-ca", metavar="PATH", help="PEM file of the authority of clients' certificates"
    )


def _add_verify(verify: argparse.ArgumentParser) -> None:
    verify.set_defaults(run=_verify)
    _add_url(verify)
    verify.add_argument("run_ids", nargs="*", metavar="RUN_ID", help="runs to check (default: all)")


def _add_db(db: argparse.ArgumentParser) -> None:
    actions = db.add_subparsers(dest="action", required=True, metavar="ACTION")
    check = actions.add_parser(
        "check",
        help="compare the schema with what this version needs",
        description="Say what the database lacks: tables, columns, keys and indexes.",
    )
    check.set_defaults(run=_check)
    _add_url(check)
    prune = actions.add_parser(
        "prune",
        help="delete the logs of runs that ended long ago",
        description="Delete events, ledger, interactions and tasks of runs that ended long ago. "
        "Sessions, messages and the runs themselves stay.",
    )
    prune.set_defaults(run=_prune)
    _add_url(prune)
    prune.add_argument(
        "--older-than",
        required=True,
        metavar="TIME",
        help="how long ago they ended: a number and s, m, h, d or w, for example 30d",
    )
    prune.add_argument("--dry-run", action="store_true", help="only say what would be deleted")
    prune.add_argument(
        "--batch",
        type=_positive,
        default=1000,
        metavar="EVENTS",
        help="events per transaction (default: 1000)",
    )


def _add_url(parser: argparse.ArgumentParser) -> None:
    given = os.environ.get(URL_VARIABLE)
    parser.add_argument(
        "--url",
        required=not given,
        default=given,
        metavar="URL",
        help=f"SQLAlchemy URL of the database (or {URL_VARIABLE}, where others cannot see it)",
    )


def _seconds(text: str) -> float:
    number = float(text)
    if not 0 < number < math.inf:
        raise ValueError(text)
    return number


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def _port(text: str) -> int:
    number = int(text)
    if not 0 <= number <= MAX_PORT:
        # The system would take another one.
        raise argparse.ArgumentTypeError(f"a port is 0 to {MAX_PORT}")
    return number


def _is_garbled(argument: str) -> bool:
    """Whether the shell passed bytes that are no text; no database and no resolver takes them."""
    try:
        argument.encode()
    except UnicodeEncodeError:
        return True
    return False


def _add_address(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1", help="address to bind (default: 127.0.0.1)")
    parser.add_argument("--port", type=_port, default=8000, help="port to bind (default: 8000)")


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
    from rungent.asgi.command import ServeOptions, run_app

    given = vars(arguments)
    options = ServeOptions(**{field.name: given[field.name] for field in fields(ServeOptions)})
    return run_app(arguments.app, options)


def _verify(arguments: argparse.Namespace) -> int:
    from rungent.persistence.command import verify_database

    return verify_database(arguments.url, arguments.run_ids)


def _check(arguments: argparse.Namespace) -> int:
    from rungent.persistence.command import check_database

    return check_database(arguments.url)


def _prune(arguments: argparse.Namespace) -> int:
    from rungent.persistence.command import parse_duration, prune_database

    try:
        older_than = parse_duration(arguments.older_than)
    except ValueError as wrong:
        print(f"rungent db prune: --older-than: {wrong}", file=sys.stderr)
        return USAGE_ERROR
    return prune_database(
        arguments.url,
        older_than=older_than,
        dry_run=arguments.dry_run,
        batch=arguments.batch,
    )
