"""The HTTP adapter: a runtime's routes as a Quart-Trio application or as a blueprint.

Source: docs/http.md.
"""

from rungent.asgi.blueprint import create_blueprint as create_blueprint
from rungent.asgi.mount import create_app as create_app
from rungent.asgi.serve import load_app as load_app
from rungent.asgi.serve import serve as serve
from rungent.asgi.tls import Tls as Tls

__all__ = ["Tls", "create_app", "create_blueprint", "load_app", "serve"]
