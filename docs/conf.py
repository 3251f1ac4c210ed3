"""Configuration of the documentation site. ``make docs`` builds it; see docs/design.md."""

from __future__ import annotations

import sys
from pathlib import Path

DOCS = Path(__file__).parent
ROOT = DOCS.parent
sys.path.insert(0, str(ROOT / "src"))

import pyspar  # noqa: E402

project, author, copyright = "pyspar", "The pyspar developers", "The pyspar developers"
version = release = pyspar.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # copies MathJax into the site, so that formulas need no network
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "README.md"]
nitpicky = True
smartquotes = False  # docstrings quote the values of parameters
highlight_language = "none"  # blocks without a language are output

# Markdown. Headings get anchors like those on code hosting sites, and these anchors are checked.
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 4
myst_dmath_double_inline = True

# API reference: two pages. Names are documented where users import them, with numpy docstrings.
autosummary_generate = False
autodoc_default_options = {
    "members": True,
    "inherited-members": "BaseEstimator, RegressorMixin, MultiOutputMixin, "
    "ImportError, ValueError, UserWarning, tuple, object",
}
autodoc_typehints = "none"
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False

# Gallery. Each examples/plot_*.py runs while the site is built, and an example that fails stops the build.
GALLERY = ("basics", "align", "labels", "forecasts", "networks", "theory")
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "nested_sections": False,  # one page for the gallery, with a heading for each folder
    "gallery_dirs": "gallery",
    "subsection_order": [f"../examples/{name}" for name in GALLERY],
    "filename_pattern": "plot_",
    "ignore_pattern": r"^(?!.*plot_).*\.py$",
    "within_subsection_order": "FileNameSortKey",
    "show_memory": False,
    "write_computation_times": False,
    "download_all_examples": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
}

html_theme = "pydata_sphinx_theme"
html_title = f"pyspar {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/logo.svg"
html_context = {"default_mode": "auto"}
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "header_links_before_dropdown": 9,
    "navbar_align": "left",
    "navbar_persistent": ["search-button"],
    "navigation_with_keys": False,
    "show_prev_next": True,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "logo": {"text": "pyspar", "image_light": "_static/logo.svg", "image_dark": "_static/logo.svg"},
    "back_to_top_button": True,
}
html_sidebars = {"index": [], "evidence": [], "design": [], "changelog": []}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_exclude = ".linenos, .gp, .go"


# Pages are plain Markdown, which code hosting sites can show. The tables of contents are added here: the first page of
# a section is its page in the header, and lists the others.
SECTIONS = {
    "index": """
Start <first-example>
Guide <tables>
Gallery <gallery/index>
API <api>
Theory <theorems>
Evidence <evidence>
Reproduction <paper>
Design <design>
Changelog <changelog>""",
    "first-example": """
First example <self>
what-stays-the-same""",
    "tables": """
Tables and pipelines <self>
networks
labels
forecasts
scale
command-line
recipes""",
    "api": """
API reference <self>
theory-api""",
    "theorems": """
The paper's theorems <self>
method
alignment
label-correction""",
    "paper": """
The paper <self>
reproduction
data""",
}


def add_navigation(app: object, page: str, source: list[str]) -> None:
    """Add its table of contents to the first page of a section."""
    if page in SECTIONS:
        source[0] += f"\n```{{toctree}}\n:hidden:\n{SECTIONS[page]}\n```\n"


def skip_metadata_requests(app: object, what: str, name: str, obj: object, skip: bool, options: object) -> bool | None:
    """Leave out the methods that scikit-learn adds to every estimator, such as ``set_fit_request``."""
    added = name in ("get_metadata_routing", "set_output") or (name.startswith("set_") and name.endswith("_request"))
    return True if added else None


def setup(app: object) -> None:
    """Connect the events of this site."""
    app.connect("source-read", add_navigation)  # type: ignore[attr-defined]
    app.connect("autodoc-skip-member", skip_metadata_requests)  # type: ignore[attr-defined]
