"""Sphinx settings of the documentation site. `python -m tests.docs.site` builds it."""

project = "Rungent"
project_copyright = "the Rungent authors"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "Rungent"
html_baseurl = ""
html_copy_source = False
html_show_sphinx = False
html_static_path = ["static"]
html_css_files = ["site.css"]
templates_path = ["templates"]
html_theme_options = {"top_of_page_buttons": ["view"]}
highlight_language = "none"
pygments_style = "friendly"
pygments_dark_style = "github-dark"
# The same anchors as those of code hosts; tests/docs checks links by them, too.
myst_heading_anchors = 4
myst_enable_extensions: list[str] = []
nitpicky = True
