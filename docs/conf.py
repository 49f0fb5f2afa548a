"""Configuration of the site: `sphinx-build -W --keep-going docs site`, or `tox -e docs`. It needs no network."""

import sys
from pathlib import Path

import torchlite

# Pages call the package `torch`, as programs do after `import torchlite as torch`.
torchlite.as_torch()
sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "torchlite"
author = "The torchlite authors"
version = release = torchlite.__torchlite_version__
copyright = author

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "math_as_mathml",
    "public_names",
    "docstrings",
]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_ext", "_static"]
templates_path = []
nitpicky = False

autosummary_generate = False  # public_names writes the pages, with what the op records say
autodoc_typehints = "none"
autodoc_member_order = "groupwise"
autodoc_inherit_docstrings = False
napoleon_google_docstring = True
napoleon_numpy_docstring = False
default_role = "code"
python_use_unqualified_type_names = True
toc_object_entries = False
strip_signature_backslash = True

html_theme = "pydata_sphinx_theme"
html_title = "torchlite"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "collapse_navigation": True,
    "navigation_depth": 2,
    "show_nav_level": 1,
    "show_toc_level": 2,
    "header_links_before_dropdown": 6,
    "search_bar_text": "Search",
    "navbar_align": "left",
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": []}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True
