"""Old names of persist (temporary)."""
