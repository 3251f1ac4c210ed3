"""Callbacks and exporters for other libraries. Each module needs its own extra, and nothing is imported here.

``lightning`` (PyTorch Lightning), ``huggingface`` (transformers), ``onnx`` (skl2onnx) and ``mlflow``.
"""
