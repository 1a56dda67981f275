"""A real API server of Kubernetes with an etcd of its own, on loopback. No kubelet, no scheduler, no controllers."""

import json
import pathlib
import shutil
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from typing import Any

from tests.kubernetes import manifests

# Debian has no package of it: bazelw builds it with --config=kube.
PROGRAM = pathlib.Path("/var/cache/r2cc/kube-apiserver")
# It is ready in 10 s on a machine that does nothing else.
_READY_TIMEOUT_S = 200
_TOKEN = "administrator"


def missing() -> str:
  """Why a test cannot run here; empty if it can."""
  if not PROGRAM.is_file():
    return f"needs api_server: {PROGRAM}, which `./bazelw test --config=kube //tests/kubernetes:api_server_test` builds"
  if shutil.which("etcd") is None:
    return "needs etcd"
  return manifests.missing()


def _free_ports(count: int) -> list[int]:
  listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
  ports = [listener.getsockname()[1] for listener in listeners]
  for listener in listeners:
    listener.close()
  return ports


class ApiServer:
  """Runs from __enter__ to __exit__; everything it writes is below `folder`."""

  def __init__(self, folder: pathlib.Path):
    self._folder = folder
    self._started: list[subprocess.Popen] = []
    self._etcd_port, self._etcd_peers_port, self._port = _free_ports(3)

  def __enter__(self) -> "ApiServer":
    try:
      self._start()
    except BaseException:
      self.__exit__()
      raise
    return self

  def __exit__(self, *_) -> None:
    for process in reversed(self._started):
      process.kill()
      process.wait()

  @property
  def certificate(self) -> pathlib.Path:
    """What the server is known by."""
    return self._folder / "certificates" / "apiserver.crt"

  @property
  def address(self) -> str:
    return f"127.0.0.1:{self._port}"

  def ask(self, method: str, path: str, body: dict[str, Any] | None = None, user: str = "") -> tuple[int, dict[str, Any]]:
    """One request, by the administrator or in the name of `user`: the HTTP status, and the answer."""
    kind = "application/strategic-merge-patch+json" if method == "PATCH" else "application/json"
    headers = {"Authorization": f"Bearer {_TOKEN}", "Content-Type": kind}
    if user:
      headers["Impersonate-User"] = user
    request = urllib.request.Request(f"https://127.0.0.1:{self._port}{path}", method=method, headers=headers,
                                     data=None if body is None else json.dumps(body).encode())
    context = ssl.create_default_context(cafile=str(self.certificate))
    try:
      with urllib.request.urlopen(request, context=context, timeout=60) as answer:
        return answer.status, json.load(answer)
    except urllib.error.HTTPError as refused:
      text = refused.read()
      try:
        return refused.code, json.loads(text)
      except ValueError:
        return refused.code, {"message": text.decode(errors="replace")}

  def kubectl(self, *arguments: str | pathlib.Path) -> subprocess.CompletedProcess:
    """Debian's kubectl, by the administrator."""
    return subprocess.run([manifests.KUBECTL, f"--server=https://127.0.0.1:{self._port}", f"--certificate-authority={self.certificate}",
                           f"--token={_TOKEN}", f"--cache-dir={self._folder / 'cache'}", *arguments], capture_output=True, text=True,
                          check=False, env={"HOME": str(self._folder)}, timeout=120)

  def _start(self) -> None:
    folder = self._folder
    etcd, etcd_peers = f"http://127.0.0.1:{self._etcd_port}", f"http://127.0.0.1:{self._etcd_peers_port}"
    self._run("etcd", ["etcd", "--data-dir", folder / "etcd", "--listen-client-urls", etcd, "--advertise-client-urls", etcd,
                       "--listen-peer-urls", etcd_peers, "--initial-advertise-peer-urls", etcd_peers,
                       "--initial-cluster", f"default={etcd_peers}"])
    (folder / "tokens").write_text(f'{_TOKEN},administrator,1,"system:masters"\n', encoding="ascii")
    key = folder / "service_accounts.key"
    subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
    self._run("api_server", [
        PROGRAM, f"--etcd-servers={etcd}", f"--secure-port={self._port}", "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
        # An endpoint on loopback is no endpoint for pods, of which there are none.
        "--endpoint-reconciler-type=none", f"--cert-dir={folder / 'certificates'}", "--service-account-issuer=https://r2cc.test",
        f"--service-account-signing-key-file={key}", f"--service-account-key-file={key}", "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction", f"--token-auth-file={folder / 'tokens'}", "--service-cluster-ip-range=10.96.0.0/16"])
    end = time.monotonic() + _READY_TIMEOUT_S
    while not self._is_ready():
      for process in self._started:
        if process.poll() is not None or time.monotonic() > end:
          raise RuntimeError(f"the API server is not ready: {self._log('etcd')}\n{self._log('api_server')}")
      time.sleep(0.2)

  def _is_ready(self) -> bool:
    # With the classes of priority, which it makes itself once it is up.
    try:
      return self.ask("GET", "/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical")[0] == 200
    except OSError:
      return False

  def _run(self, name: str, command: list[str | pathlib.Path]) -> None:
    with open(self._folder / f"{name}.log", "wb") as log:
      self._started.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={"HOME": str(self._folder)}))

  def _log(self, name: str) -> str:
    return "\n".join((self._folder / f"{name}.log").read_text(encoding="utf-8", errors="replace").splitlines()[-20:])
