"""The Python package r2cc.observe, by paths that are the same wherever it is installed."""

SOURCES = [
    "r2cc/observe/__init__.py",
    "r2cc/observe/__main__.py",
    "r2cc/observe/_attach.py",
    "r2cc/observe/_compiled.py",
    "r2cc/observe/_files.py",
    "r2cc/observe/_library.py",
    "r2cc/observe/_plan.py",
    "r2cc/observe/_points.py",
    "r2cc/observe/_policy.py",
    "r2cc/observe/_read.py",
    "r2cc/observe/_steps.py",
    "r2cc/observe/_tensor.py",
    "r2cc/observe/_tool.py",
]
