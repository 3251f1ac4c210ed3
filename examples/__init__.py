"""The gallery of the site, one script per page, and the demo."""
