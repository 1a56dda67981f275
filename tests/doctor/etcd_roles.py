"""Users and roles of an etcd that asks for certificates, through its JSON gateway: what etcdctl would do.

  etcd_roles.py URL FOLDER begin PREFIX    # root, and user r2cc, who may read what begins with PREFIX; then nothing goes without
  etcd_roles.py URL FOLDER grant PREFIX    # r2cc may write there, too

FOLDER has root.pem, root.key and ca.pem.
"""

import base64
import json
import pathlib
import ssl
import sys
import urllib.error
import urllib.request

PASSWORD = "not a secret"


class Gateway:

  def __init__(self, url: str, folder: pathlib.Path):
    self._url, self._token = url, ""
    self._context = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    self._context.load_cert_chain(folder / "root.pem", folder / "root.key")

  def post(self, path: str, **fields) -> dict:
    headers = {"Authorization": self._token} if self._token else {}
    request = urllib.request.Request(f"{self._url}/v3/auth/{path}", json.dumps(fields).encode(), headers)
    try:
      with urllib.request.urlopen(request, context=self._context, timeout=10) as reply:
        return json.load(reply)
    except urllib.error.HTTPError as error:
      sys.exit(f"{path}: {error}: {error.read().decode()}")

  def grant(self, permission: str, prefix: str) -> None:
    ends = {"key": prefix, "range_end": prefix[:-1] + chr(ord(prefix[-1]) + 1)}
    coded = {name: base64.b64encode(text.encode()).decode() for name, text in ends.items()}
    self.post("role/grant", name="r2cc", perm={"permType": permission, **coded})

  def log_in(self) -> None:
    self._token = self.post("authenticate", name="root", password=PASSWORD)["token"]


def main(url: str, folder: str, what: str, prefix: str) -> None:
  gateway = Gateway(url, pathlib.Path(folder))
  if what == "begin":
    for user in ("root", "r2cc"):
      gateway.post("role/add", name=user)
      gateway.post("user/add", name=user, password=PASSWORD)
      gateway.post("user/grant", user=user, role=user)
    gateway.grant("READ", prefix)
    gateway.post("enable")
  else:
    gateway.log_in()
    gateway.grant("READWRITE", prefix)


if __name__ == "__main__":
  main(*sys.argv[1:])
