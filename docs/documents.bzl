"""The pages of docs/ that are installed. //tests/docs:links_test compares the list with the tree."""

DOCUMENTS = [
    "configure.md",
    "diagnose.md",
    "install.md",
    "kubernetes.md",
    "limits.md",
    "operate/commands.md",
    "operate/daemon.md",
    "rdma.md",
    "reference/environment.md",
    "results.md",
    "schedules.md",
    "security.md",
    "start/drill.md",
    "start/quickstart.md",
    "start/training-job.md",
    "upgrade.md",
]
