"""As much of Kubernetes' API server as r2cc-conditions asks: nodes, a strategic merge of their conditions, Events, one token. HTTPS.

Each node names the writers of its conditions' fields (managedFields), as Kubernetes does.
"""

import datetime
import http.server
import json
import pathlib
import ssl
import subprocess
import threading
import urllib.parse
from typing import Any

from tests.kubernetes import schema

TOKEN = "the-token-of-r2cc-conditions"


class FakeApiServer:
  """Serves from __enter__ to __exit__. `account`: what the kubelet would mount."""

  def __init__(self, folder: pathlib.Path, nodes: list[str]):
    self.account = folder / "account"
    ready = {"type": "Ready", "status": "True"}
    self.nodes: dict[str, dict[str, Any]] = {
        name: {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"conditions": [dict(ready)]}} for name in nodes}
    self.events: list[dict[str, Any]] = []
    self.refused: list[str] = []  # what a real one would not have taken
    self.patched: list[str] = []  # nodes, in turn
    self._folder = folder

  @property
  def address(self) -> str:
    return f"127.0.0.1:{self._server.server_address[1]}"

  def __enter__(self) -> "FakeApiServer":
    self.account.mkdir()
    key = self._folder / "server.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=kubernetes", "-addext",
                    "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", self.account / "ca.crt"], check=True, capture_output=True)
    (self.account / "token").write_text(TOKEN + "\n", encoding="ascii")
    outer = self

    class Handler(http.server.BaseHTTPRequestHandler):
      def do_GET(self):
        outer._answer(self, "")

      def do_PATCH(self):
        outer._answer(self, self.rfile.read(int(self.headers["Content-Length"])).decode())

      do_POST = do_PATCH

      def log_message(self, *_):
        pass

    self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(self.account / "ca.crt", key)
    self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
    threading.Thread(target=self._server.serve_forever, daemon=True).start()
    return self

  def __exit__(self, *_) -> None:
    self._server.shutdown()
    self._server.server_close()

  def condition(self, node: str) -> dict[str, Any]:
    """R2CCRailDegraded; empty: the node has none."""
    return next((one for one in self.nodes[node]["status"]["conditions"] if one["type"] == "R2CCRailDegraded"), {})

  def _answer(self, request: http.server.BaseHTTPRequestHandler, body: str) -> None:
    status, answer = self._ask(request, body)
    text = json.dumps(answer).encode()
    request.send_response(status)
    request.send_header("Content-Type", "application/json")
    request.send_header("Content-Length", str(len(text)))
    request.end_headers()
    request.wfile.write(text)

  def _ask(self, request: http.server.BaseHTTPRequestHandler, body: str) -> tuple[int, dict[str, Any]]:
    if request.headers["Authorization"] != f"Bearer {TOKEN}":
      return 401, {"message": "Unauthorized"}
    method, (path, _, query) = request.command, request.path.partition("?")
    name = path.removeprefix("/api/v1/nodes/").removesuffix("/status")
    if method == "POST" and path == "/api/v1/namespaces/default/events":
      return self._take_event(json.loads(body))
    if method == "GET" and path == "/api/v1/nodes":
      return 200, self._page(urllib.parse.parse_qs(query))
    if name not in self.nodes:
      return 404, {"message": f"nodes {name} not found"}
    if method == "GET" and path == f"/api/v1/nodes/{name}":
      return 200, self.nodes[name]
    if method == "PATCH" and path == f"/api/v1/nodes/{name}/status":
      if request.headers["Content-Type"] != "application/strategic-merge-patch+json":
        self.refused.append(f"{path}: {request.headers['Content-Type']}")
        return 415, {}
      return self.merge(name, json.loads(body), urllib.parse.parse_qs(query).get("fieldManager", ["unknown"])[0])
    self.refused.append(f"{method} {path}")
    return 403, {"message": "forbidden"}

  def _page(self, query: dict[str, list[str]]) -> dict[str, Any]:
    """Two nodes at most, whatever limit is asked for; a real one may do that, too."""
    begin = int(query.get("continue", ["0"])[0])
    end = begin + min(2, int(query["limit"][0]))
    return {"kind": "NodeList", "apiVersion": "v1", "items": list(self.nodes.values())[begin:end],
            "metadata": {"continue": str(end)} if end < len(self.nodes) else {}}

  def merge(self, name: str, patch: dict[str, Any], manager: str) -> tuple[int, dict[str, Any]]:
    """Conditions merge by their type. Who changes a field is its manager."""
    conditions = self.nodes[name]["status"]["conditions"]
    for one in patch["status"]["conditions"]:
      there = next((each for each in conditions if each["type"] == one["type"]), None)
      if there is None:
        conditions.append(there := {})
      self._manage(self.nodes[name]["metadata"], one["type"], [field for field in one if one[field] != there.get(field)], manager)
      there.update(one)
    problems = schema.problems_of_model(patch["status"], "V1NodeStatus")
    self.refused += problems
    self.patched.append(name)
    return (422, {}) if problems else (200, self.nodes[name])

  @staticmethod
  def _manage(metadata: dict[str, Any], condition: str, fields: list[str], manager: str) -> None:
    key = "k:" + json.dumps({"type": condition}, separators=(",", ":"))
    entries = metadata.setdefault("managedFields", [])
    entry = next((one for one in entries if one["manager"] == manager), None)
    if entry is None:
      entries.append(entry := {"manager": manager, "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
                               "fieldsV1": {"f:status": {"f:conditions": {}}}})
    entry["time"] = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    for one in entries:
      theirs = one["fieldsV1"]["f:status"]["f:conditions"].setdefault(key, {".": {}})
      for field in fields:
        theirs.pop("f:" + field, None)
        if one is entry:
          theirs["f:" + field] = {}

  def _take_event(self, event: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    # As a real one: an Event is in the namespace of what it is about, which for a node is `default`.
    problems = schema.problems_of_model(event, "CoreV1Event")
    self.refused += problems
    if problems or event["metadata"]["namespace"] != "default":
      return 422, {}
    self.events.append(event)
    return 201, event
