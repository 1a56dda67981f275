"""The kustomizations of deploy/kubernetes as kubectl makes objects of them."""

import pathlib
import shutil
import subprocess
from typing import Any

import yaml

# Debian's, which bazelw unpacks; its kustomize is the oldest that the manifests keep to.
KUBECTL = pathlib.Path("/var/cache/r2cc/kubectl/usr/bin/kubectl")
_NEEDS = f"needs kubectl: {KUBECTL}, which bazelw unpacks on Debian"


def missing() -> str:
  """Why a test cannot run here; empty if it can."""
  return "" if KUBECTL.is_file() else _NEEDS


def copy_tree(source: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
  """The manifests as plain files: kustomize follows no link out of a kustomization, and Bazel's runfiles are links."""
  target = folder / "kubernetes"
  shutil.copytree(source, target)
  return target


def render(kustomization: pathlib.Path, kubectl: pathlib.Path = KUBECTL) -> list[dict[str, Any]]:
  """The objects, by kind and name. CalledProcessError, with what kubectl says in `stderr`, for one that is wrong."""
  done = subprocess.run([kubectl, "kustomize", kustomization], check=True, capture_output=True, text=True)
  objects = [one for one in yaml.safe_load_all(done.stdout) if one is not None]
  return sorted(objects, key=lambda one: (one["kind"], one["metadata"]["name"]))


def find(objects: list[dict[str, Any]], kind: str, name: str) -> dict[str, Any]:
  """The one of that kind and name."""
  found, = [one for one in objects if (one["kind"], one["metadata"]["name"]) == (kind, name)]
  return found


def pod_specs(objects: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
  """What each workload runs, by KIND/NAME."""
  return {f"{one['kind']}/{one['metadata']['name']}": one["spec"]["template"]["spec"] for one in objects
          if one["kind"] in ("DaemonSet", "Deployment", "Job")}
