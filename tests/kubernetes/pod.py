"""A pod's containers as processes, from its spec: the command lines, users, mounts and volumes are what the manifest says."""

import os
import pathlib
import re
import shutil
import subprocess
from typing import Any

from tests.kubernetes import runtime

_PATH = "/usr/sbin:/usr/bin"


class Node:
  """What a pod finds: the image, the objects of the cluster, and a folder that stands for the node's own file system."""

  def __init__(self, root: pathlib.Path, objects: list[dict[str, Any]], folder: pathlib.Path, name: str, netns: str):
    self.root, self.objects, self.folder, self.name, self.netns = root, objects, folder, name, netns
    # Where a container's root is: volumes must not be inside of it.
    self.host = folder / "host"
    self.host.mkdir(parents=True)


class Pod:
  """One pod of `spec`. What it started is killed by close()."""

  def __init__(self, node: Node, spec: dict[str, Any], name: str):
    self._node, self._spec, self._name = node, spec, name
    self._volumes_folder = node.folder / f"{name}-volumes"
    self._volumes_folder.mkdir()
    self._started: list[subprocess.Popen] = []
    self._running: dict[str, runtime.Container] = {}
    self._made = 0
    self._volumes = {volume["name"]: self._volume(volume) for volume in spec["volumes"]}

  def close(self) -> None:
    for container in self._running.values():
      container.delete()
    for process in self._started:
      process.wait()

  def run_init_containers(self) -> list[subprocess.CompletedProcess]:
    """One after the other, up to the first that fails."""
    done = []
    for container in self._spec.get("initContainers", []):
      done.append(self.execute(container, container["command"]))
      if done[-1].returncode != 0:
        break
    return done

  def start(self, container: dict[str, Any], log: pathlib.Path) -> subprocess.Popen:
    """Its own command; the output goes to `log`."""
    made = self._make(container, container["command"])
    with open(log, "ab") as out:
      process = subprocess.Popen(made.run_command(), stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    self._started.append(process)
    self._running[container["name"]] = made
    return process

  def execute(self, container: dict[str, Any], command: list[str], timeout_s: float = 200) -> subprocess.CompletedProcess:
    """A command in the container, as a probe or a person runs it; in one of its own where that was not started."""
    running = self._running.get(container["name"])
    argv = self._make(container, command).run_command() if running is None else running.exec_command(command)
    return subprocess.run(argv, capture_output=True, text=True, timeout=timeout_s, check=False, stdin=subprocess.DEVNULL)

  def pid(self, container: dict[str, Any]) -> int:
    """Of a container that runs: its first process, seen from here."""
    return self._running[container["name"]].pid()

  def _make(self, container: dict[str, Any], command: list[str]) -> runtime.Container:
    pod, own = self._spec["securityContext"], container["securityContext"]
    environment = {"PATH": _PATH} | {one["name"]: self._value(one) for one in container.get("env", [])}
    if pod["seccompProfile"] != {"type": "RuntimeDefault"} or own["allowPrivilegeEscalation"] or own["capabilities"]["drop"] != ["ALL"]:
      raise ValueError(f"not known here: {own}")
    self._made += 1
    words = [re.sub(r"\$\((\w+)\)", lambda match: environment[match.group(1)], word) for word in command]
    return runtime.Container(
        f"{self._name}-{self._made}", self._volumes_folder / f"bundle-{self._made}", self._node.root, own["readOnlyRootFilesystem"],
        self._node.netns, [self._mount(mount) for mount in container["volumeMounts"]],
        {"uid": own.get("runAsUser", pod["runAsUser"]), "gid": own.get("runAsGroup", pod["runAsGroup"]),
         "groups": [pod["fsGroup"]] if "fsGroup" in pod else [], "capabilities": own["capabilities"].get("add", []),
         "environment": environment, "command": words})

  def _value(self, one: dict[str, Any]) -> str:
    if "value" in one:
      return one["value"]
    if one["valueFrom"]["fieldRef"]["fieldPath"] != "spec.nodeName":
      raise ValueError(f"not known here: {one}")
    return self._node.name

  def _mount(self, mount: dict[str, Any]) -> dict[str, Any]:
    source = self._volumes[mount["name"]] / mount.get("subPath", "")
    target = self._node.root / mount["mountPath"].lstrip("/")
    # A runtime makes what is missing in a layer of its own, before it makes that read-only.
    if source.is_dir():
      target.mkdir(parents=True, exist_ok=True)
    else:
      target.touch()
    return {"source": str(source), "target": mount["mountPath"], "read_only": mount.get("readOnly", False)}

  def _volume(self, volume: dict[str, Any]) -> pathlib.Path:
    group = self._spec["securityContext"].get("fsGroup", 0)
    if "hostPath" in volume:
      return self._host_path(volume["hostPath"])
    folder = self._volumes_folder / volume["name"]
    folder.mkdir()
    if "emptyDir" in volume:
      os.chown(folder, 0, group)
      folder.chmod(0o2777)
      return folder
    if "projected" in volume:
      contents = {}
      for source in volume["projected"]["sources"]:
        contents |= self._data("ConfigMap", source["configMap"]["name"], source["configMap"].get("optional", False))
      mode = volume["projected"].get("defaultMode", 0o644)
    elif "configMap" in volume:
      contents, mode = self._data("ConfigMap", volume["configMap"]["name"], False), volume["configMap"].get("defaultMode", 0o644)
    else:
      secret = volume["secret"]
      contents, mode = self._data("Secret", secret["secretName"], secret.get("optional", False)), secret.get("defaultMode", 0o644)
    # As the kubelet writes them: links into a directory that is replaced as a whole.
    (folder / "..2026_01_01").mkdir()
    (folder / "..data").symlink_to("..2026_01_01")
    for name, text in contents.items():
      file = folder / "..2026_01_01" / name
      file.write_text(text, encoding="utf-8")
      os.chown(file, 0, group)
      file.chmod(mode)
      (folder / name).symlink_to(f"..data/{name}")
    return folder

  def _host_path(self, host: dict[str, str]) -> pathlib.Path:
    path = self._node.host / host["path"].lstrip("/")
    if host["type"] == "DirectoryOrCreate" and not path.exists():
      path.mkdir(parents=True, mode=0o755)
    if not path.is_dir():
      raise FileNotFoundError(f"hostPath {host['path']}: {host['type']}")
    return path

  def _data(self, kind: str, name: str, optional: bool) -> dict[str, str]:
    for one in self._node.objects:
      if (one["kind"], one["metadata"]["name"]) == (kind, name):
        return one.get("data", {}) | one.get("stringData", {})
    if not optional:
      raise FileNotFoundError(f"{kind} {name}")
    return {}


def network(name: str) -> None:
  """A network namespace with two NICs, each a veth whose other end is there too: they have a carrier, and lead nowhere."""
  run = lambda *words: subprocess.run(["ip", *words], check=True, capture_output=True)  # pylint: disable=unnecessary-lambda-assignment
  run("netns", "add", name)
  run("-n", name, "link", "set", "lo", "up")
  for rail in (1, 2):
    run("-n", name, "link", "add", f"eth{rail}", "type", "veth", "peer", "name", f"port{rail}")
    run("-n", name, "addr", "add", f"10.77.{rail}.1/24", "dev", f"eth{rail}")
    for end in ("eth", "port"):
      run("-n", name, "link", "set", f"{end}{rail}", "up")


def unpack_image(archive: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
  """The image's root file system, as umoci unpacks it."""
  shutil.unpack_archive(archive, folder / "layout", "tar")
  subprocess.run(["umoci", "unpack", "--image", f"{folder / 'layout'}:latest", folder / "bundle"], check=True, capture_output=True)
  return folder / "bundle" / "rootfs"
