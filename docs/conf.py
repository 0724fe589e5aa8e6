"""How Sphinx builds these pages: ``sphinx-build -W --keep-going -b html docs docs/_build/html``."""

from pygments.lexers import PythonLexer
from sphinx.highlighting import lexers

import gpubench

project = "gpubench"
author = "the gpubench authors"
version = release = gpubench.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
]
exclude_patterns = ["_build", "jupyter_execute", "accuracy_table.md"]  # a part of accuracy.md

myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3
nb_execution_mode = "force"  # the lessons show what they did on the machine that builds them
nb_execution_raise_on_error = True
nb_execution_timeout = 60
nb_execution_show_tb = True
nb_merge_streams = True

default_role = "autolink"  # `name` in a docstring links to what has that name, if anything has
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings tell, with shapes and units
autodoc_preserve_defaults = True
autosummary_generate = False
napoleon_google_docstring = False
napoleon_use_ivar = True
add_module_names = False

lexers["ipython"] = PythonLexer()

html_theme = "furo"
html_title = "gpubench"
html_copy_source = False
html_show_copyright = False
