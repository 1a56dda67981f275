"""Drills of r2ccd's page in Chromium, by the certificate that the browser shows: of an operator with DRILL, of one without, and none."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest

from tests.page import browser, stage

_R2CCD = os.path.realpath("daemon/r2ccd")
_R2CCCTL = os.path.realpath("client/r2ccctl")
_READY = "document.querySelector('#answer')?.hasAttribute('data-level') && document.getElementById('nic').textContent.includes('Drill')"
_FORM, _BUTTON = "document.querySelector('#nic form')", "document.querySelector('#nic form button')"
_IS_DRILL = "fetch('/api/v1/map').then((r) => r.text()).then((text) => /\"drill_failed\": *true/.test(text))"


def why_not():
  missing = [tool for tool in ("certutil", "pk12util") if shutil.which(tool) is None]
  return stage.why_not() or (f"needs browser: there is no {missing[0]}" if missing else "")


class CertificateInBrowserTest(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    if why := why_not():
      raise unittest.SkipTest(why)
    stage.enter_namespace()
    cls.folder = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="r2cc-certificates."))
    cls.authority = f"{cls.folder}/ca"
    for words in (["init"], ["issue", "own"], ["issue", "alice", "--operator"], ["issue", "bob", "--operator"]):
      subprocess.run([_R2CCCTL, "certs", *words, "--dir", cls.authority], check=True, stdout=subprocess.DEVNULL)
    grants = 'grants { roles: VIEW roles: DRILL operators: "alice" }\ngrants { roles: VIEW operators: "bob" }\n'
    cls.world = stage.Stage(_R2CCD, "", 0, extra=grants, tls=f"{cls.authority}/own")
    cls.addClassCleanup(cls.world.close)
    stage.set_policy({"AutoSelectCertificateForUrls": [json.dumps({"pattern": cls.world.url.rstrip("/"), "filter": {}})]})

  def chrome(self, operator):
    """A browser that has the certificate of `operator` and no other; empty: none."""
    home = tempfile.mkdtemp(prefix="r2cc-chrome.")
    self.addCleanup(shutil.rmtree, home, ignore_errors=True)
    database = f"{home}/.pki/nssdb"
    os.makedirs(database)
    certutil = ["certutil", "-d", f"sql:{database}"]
    subprocess.run([*certutil, "-N", "--empty-password"], check=True)
    subprocess.run([*certutil, "-A", "-n", "r2cc", "-t", "C,,", "-i", f"{self.authority}/ca.crt"], check=True)
    if operator:
      key, bundle = f"{self.authority}/{operator}/operator", f"{home}/{operator}.p12"
      subprocess.run(["openssl", "pkcs12", "-export", "-inkey", f"{key}.key", "-in", f"{key}.crt", "-name", operator, "-out", bundle,
                      "-passout", "pass:"], check=True)
      subprocess.run(["pk12util", "-d", f"sql:{database}", "-i", bundle, "-W", ""], check=True, stdout=subprocess.DEVNULL)
    chrome = browser.Browser(home, [f"--host-resolver-rules=MAP own {self.world.address}"])
    self.addCleanup(chrome.close)
    return chrome

  def page(self, operator):
    """The page, at a NIC."""
    page = self.chrome(operator).page()
    page.open(f"{self.world.url}#nic=own%2Frail1")
    return page

  def shown(self, page):
    return page.evaluate("document.getElementById('nic').textContent")

  def test_an_operator_with_the_role_begins_and_ends_a_drill(self):
    page = self.page("alice")
    self.assertTrue(page.wait_for(f"{_READY} && {_FORM} !== null"), page.evaluate("document.body.textContent")[:2000])
    self.assertEqual(page.evaluate("fetch('/api/v1/who').then((r) => r.json()).then((who) => [who.name, who.may_drill])"), ["alice", True])
    page.evaluate("document.querySelector('#nic input').focus()")
    for key in "own/rail":
      page.press(key)
    self.assertTrue(page.evaluate(f"{_BUTTON}.disabled"))
    page.press("Enter")
    self.browser_waits(page)
    self.assertFalse(page.evaluate(_IS_DRILL), "a name that is not whole began a drill")
    page.press("1")
    self.assertTrue(page.wait_for(f"!{_BUTTON}.disabled"))
    page.press("Enter")
    self.assertTrue(page.wait_for("document.querySelector('#nic [data-ends]') !== null"), self.shown(page))
    self.assertTrue(page.evaluate(_IS_DRILL))
    left = "document.querySelector('#nic [data-ends]').textContent"
    self.assertRegex(page.evaluate(left), "^(1:00|0:5[0-9])$")
    first = page.evaluate(left)
    self.assertTrue(page.wait_for(f"{left} !== '{first}'"), "it does not count down")
    self.assertTrue(page.wait_for("document.getElementById('events').textContent.includes('alice')"), "the audit names nobody")
    page.evaluate("document.querySelector('#nic [data-focus=restore]').click()")
    self.assertTrue(page.wait_for(f"{_FORM} !== null"), self.shown(page))
    self.assertFalse(page.evaluate(_IS_DRILL))

  def browser_waits(self, page):
    page.browser.pump(0.5)

  def refused(self, page):
    """What comes of a drill that a script of this page begins."""
    return page.evaluate("fetch('/api/v1/drill?action=fail&node=own&nic=rail1&seconds=60', {method: 'POST', headers: "
                         "{'R2CC-Confirm': 'own/rail1'}}).then((r) => r.text().then((text) => r.status + text))")

  def test_an_operator_without_the_role_is_offered_none(self):
    page = self.page("bob")
    self.assertTrue(page.wait_for(_READY), page.evaluate("document.body.textContent")[:2000])
    self.assertEqual(page.evaluate("document.querySelectorAll('#nic form, #nic input').length"), 0)
    self.assertIn("DRILL", self.shown(page))
    self.assertTrue(self.refused(page).startswith("403"), self.refused(page))
    self.assertFalse(page.evaluate(_IS_DRILL))

  def test_without_a_certificate_the_page_names_what_it_needs(self):
    page = self.page("")
    self.assertTrue(page.wait_for("document.querySelector('#answer')?.textContent.includes('certificate')"),
                    page.evaluate("document.body.textContent")[:2000])
    self.assertEqual(page.evaluate("document.querySelectorAll('#nic form, #nic input').length"), 0)
    self.assertTrue(self.refused(page).startswith("401"), self.refused(page))
