"""Evidence for aligning: networks on images under changed measurements, and tables with changed columns."""
