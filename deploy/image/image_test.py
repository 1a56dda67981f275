"""The image's parts as values."""

import hashlib
import io
import json
import pathlib
import re
import subprocess
import tarfile
import tempfile
import unittest

from bazel import unittest_main
from deploy.image import image


class ImageTest(unittest.TestCase):

  def test_a_tar_knows_neither_time_nor_user_nor_order(self):
    files = {"b/c": (0o644, b"1"), "a": (0o755, b"2")}
    once = image.tar(files, {"d": 0o700})
    self.assertEqual(once, image.tar(dict(reversed(files.items())), {"d": 0o700}))
    with tarfile.open(fileobj=io.BytesIO(once)) as archive:
      members = archive.getmembers()
    self.assertEqual([(one.name, one.mode, one.mtime, one.uid, one.gid, one.uname) for one in members],
                     [("a", 0o755, 0, 0, 0, ""), ("b", 0o755, 0, 0, 0, ""), ("b/c", 0o644, 0, 0, 0, ""), ("d", 0o700, 0, 0, 0, "")])

  def test_every_digest_of_the_layout_is_that_of_what_it_names(self):
    files = image.layout(b"root")
    for path, (_, contents) in files.items():
      if path.startswith("blobs/"):
        self.assertEqual(path, f"blobs/sha256/{hashlib.sha256(contents).hexdigest()}")
    manifest, = json.loads(files["index.json"][1])["manifests"]
    about = json.loads(files[f"blobs/sha256/{manifest['digest'].removeprefix('sha256:')}"][1])
    for one in [about["config"], *about["layers"]]:
      self.assertEqual(len(files[f"blobs/sha256/{one['digest'].removeprefix('sha256:')}"][1]), one["size"])

  def test_the_containerfile_has_the_same_settings(self):
    text = pathlib.Path(unittest_main.test_args()[0]).read_text(encoding="utf-8")
    settings = dict(re.findall(r"^([A-Z]+) (.*)$", text, re.MULTILINE))
    self.assertEqual(settings["USER"], image.CONFIG["User"])
    self.assertEqual([settings["ENV"]], image.CONFIG["Env"])
    self.assertEqual(json.loads(settings["ENTRYPOINT"]), image.CONFIG["Entrypoint"])
    self.assertEqual(settings["WORKDIR"], image.CONFIG["WorkingDir"])

  def test_a_library_that_is_missing_ends_it(self):
    with tempfile.TemporaryDirectory() as folder:
      self.assertRaises(subprocess.CalledProcessError, image.libraries, [pathlib.Path(folder) / "none"])
