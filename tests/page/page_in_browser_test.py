"""r2ccd's page in Chromium, over a real r2ccd whose view has 1,000 nodes."""

import http.server
import json
import os
import shutil
import tempfile
import threading
import unittest
import urllib.request

from tests.page import browser, stage

_R2CCD = os.path.realpath("daemon/r2ccd")
_FLEET = os.path.realpath("tests/page/fleet")
_AXE = "/var/cache/r2cc/axe-core/node_modules/axe-core/axe.min.js"
_HOSTILE = "<script>pwned=1</script><img src=x onerror=pwned=1>&lt;b&gt;\u202egnihton"

_READY = "document.querySelector('#answer')?.hasAttribute('data-level') && document.getElementById('canvas').hasAttribute('data-failed')"
_RED = "Number(document.getElementById('canvas').getAttribute('data-failed'))"
# Cells of the map whose corner has the colour of failed NICs.
_RED_CELLS = """(async () => {
  const {modelOf} = await import('/page/model.js'), {layoutOf, placeOf} = await import('/page/layout.js');
  const model = modelOf(await (await fetch('/api/v1/map')).json());
  const layout = layoutOf(model, document.getElementById('map').clientWidth - 4);
  const paint = document.getElementById('canvas').getContext('2d'), own = document.createElement('canvas').getContext('2d');
  own.fillStyle = getComputedStyle(document.body).getPropertyValue('--failed').trim();
  own.fillRect(0, 0, 1, 1);
  const colour = own.getImageData(0, 0, 1, 1).data.slice(0, 3).join();
  let red = 0;
  for (let node = 0; node < layout.nodes; ++node)
    for (let rail = 0; rail < layout.rails; ++rail) {
      const {x, y} = placeOf(layout, node, rail);
      if (paint.getImageData(x, y, 1, 1).data.slice(0, 3).join() === colour) ++red;
    }
  return red;
})()"""


class PageInBrowserTest(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    if why := stage.why_not():
      raise unittest.SkipTest(why)
    stage.enter_namespace()
    cls.world = stage.Stage(_R2CCD, _FLEET, 1000)
    cls.addClassCleanup(cls.world.close)
    profile = tempfile.mkdtemp(prefix="r2cc-chrome.")
    cls.addClassCleanup(shutil.rmtree, profile, ignore_errors=True)
    cls.chrome = browser.Browser(profile, ["--host-resolver-rules=MAP evil.example 127.0.0.1"])
    cls.addClassCleanup(cls.chrome.close)

  def page(self):
    page = self.chrome.page()
    self.addCleanup(page.close)
    return page

  def fail_nic(self, node, nic, state, reason):
    """NIC `nic` of `node` has another state until the test ends."""
    self.world.set(node, node, nic, state, reason)
    self.addCleanup(self.world.set, node, node, nic, "HEALTHY", "link up")

  def open(self, fragment=""):
    page = self.page()
    page.open(self.world.url + fragment)
    if not page.wait_for(_READY):
      log = [parameters["entry"]["text"] + parameters["entry"].get("url", "") for parameters in page.events("Log.entryAdded")]
      self.fail(f"the page shows nothing: {log} {page.events('Runtime.exceptionThrown')} {page.evaluate('document.body.innerText')}")
    return page

  def get(self, path):
    with urllib.request.urlopen(self.world.url + path) as answer:
      return json.load(answer)

  def failed(self):
    nics = self.get("api/v1/nics?state=failed")
    return sum(len(node["nics"]) for node in nics["nodes"])

  def test_red_cells_are_the_failed_nics(self):
    self.world.set(320, 335, -1, "FAILED", "the node does not answer")
    page = self.open()
    self.assertTrue(page.wait_for(f"{_RED} == {self.failed()}"), page.evaluate(_RED))
    self.assertGreaterEqual(self.failed(), 128)
    self.assertEqual(page.evaluate(_RED_CELLS), self.failed())
    self.assertIn("Yes: 16 nodes with at most one rail left", page.evaluate("document.querySelector('h1').textContent"))
    self.world.set(320, 335, -1, "HEALTHY", "link up")
    self.assertTrue(page.wait_for(f"{_RED} == 0"), page.evaluate(_RED))
    self.assertEqual(page.evaluate(_RED_CELLS), 0)

  def test_a_cut_cable_changes_its_cell(self):
    page = self.open()
    stage.run("ip", "link", "set", "far0", "down")
    try:
      # By the events: the map is asked for again in 15 s only, a page that does not follow is later than this.
      self.assertTrue(page.wait_for(f"{_RED} == 1", 10), page.evaluate("document.body.textContent"))
      self.assertTrue(page.wait_for("document.getElementById('list').textContent.includes('own/rail0')"))
      self.assertIn("Not now" if self.failed() == 0 else "Yes", page.evaluate("document.querySelector('h1').textContent"))
    finally:
      stage.run("ip", "link", "set", "far0", "up")
    self.assertTrue(page.wait_for(f"{_RED} == 0"))

  def test_a_walk_by_keyboard(self):
    self.fail_nic(17, 3, "FAILED", "link down")
    page = self.open()
    self.assertTrue(page.wait_for(f"{_RED} == 1"))
    page.evaluate("document.getElementById('map').focus()")
    page.press("ArrowDown")
    self.assertTrue(page.wait_for("document.getElementById('map-cell').textContent.startsWith('node0001/rail0: healthy')"))
    page.press("n")
    self.assertTrue(page.wait_for("document.getElementById('map-cell').textContent == 'node0017/rail3: failed, link down'"))
    page.press("Enter")
    self.assertTrue(page.wait_for("document.querySelector('#nic .verdict')?.textContent.includes('node0017')"))
    self.assertEqual(page.evaluate("location.hash"), "#nic=node0017%2Frail3")
    self.assertIn("r2ccctl nic why node0017/rail3", page.evaluate("document.getElementById('nic').textContent"))
    page.press("Escape")
    self.assertTrue(page.wait_for("document.getElementById('nic').hidden && document.activeElement.id == 'map'"))

  def test_hostile_text_stays_text(self):
    self.fail_nic(40, 0, "FAILED", _HOSTILE)
    page = self.open("#nic=node0040%2Frail0")
    self.assertTrue(page.wait_for("document.getElementById('list').textContent.includes('<script>')"))
    self.assertTrue(page.wait_for("document.getElementById('nic').textContent.includes('<img src=x')"))
    self.assertTrue(page.wait_for("document.getElementById('time').textContent.includes('node0040')"))
    self.assertEqual(page.evaluate("document.querySelectorAll('main script, main img, main b').length"), 0)
    self.assertEqual(page.evaluate("typeof pwned"), "undefined")
    self.assertFalse(page.evaluate("document.body.textContent.includes('\\u202e')"), "text that turns the line around")

  def test_its_policy_holds_and_it_asks_nobody_else(self):
    page = self.open()
    self.chrome.pump(1)
    hosts = {parameters["request"]["url"].split("/")[2] for parameters in page.events("Network.requestWillBeSent")}
    self.assertEqual(hosts, {f"127.0.0.1:{self.world.port}"})
    entries = [parameters["entry"]["text"] for parameters in page.events("Log.entryAdded")]
    self.assertEqual([text for text in entries if "Content Security Policy" in text], [])
    self.assertEqual(page.events("Runtime.exceptionThrown"), [])
    for attack in ("document.body.innerHTML = 'x'", "(0, eval)('1')", "new Function('1')"):
      with self.assertRaises(RuntimeError, msg=attack):
        page.evaluate(attack, as_the_page=True)
    self.assertEqual(page.evaluate("fetch('https://evil.example/').then(() => 'sent', () => 'refused')"), "refused")

  def test_a_page_of_another_origin_gets_nothing(self):
    class Evil(http.server.BaseHTTPRequestHandler):
      def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<title>evil</title>")
      def log_message(self, *_):
        pass
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Evil)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    self.addCleanup(server.shutdown)
    page = self.page()
    page.open(f"http://127.0.0.1:{server.server_port}/")
    self.assertTrue(page.wait_for("document.title == 'evil'"))
    for mode in ("cors", "no-cors"):
      script = (f"fetch('{self.world.url}api/v1/status', {{mode: '{mode}'}})"
                ".then((r) => r.text().then((t) => r.type + t.length), () => 'refused')")
      self.assertEqual(page.evaluate(script), "refused", mode)
    drill = f"{self.world.url}api/v1/drill?action=fail&node=own&nic=rail0"
    page.evaluate(f"fetch('{drill}', {{method: 'POST', mode: 'no-cors'}}).then(() => '', () => '')")
    page.evaluate(f"fetch('{drill}', {{method: 'POST', headers: {{'R2CC-Confirm': 'own/rail0'}}}}).then(() => '', () => '')")
    self.assertEqual(self.failed(), 0)

  def test_a_name_that_leads_here_is_refused(self):
    page = self.page()
    page.open(f"http://evil.example:{self.world.port}/")
    self.assertTrue(page.wait_for("document.body?.textContent.includes('the header Host is no name of this node')"))

  def test_a_page_left_open_over_a_restart(self):
    page = self.open()
    self.fail_nic(55, 1, "FAILED", "before the restart")
    self.assertTrue(page.wait_for("document.getElementById('events').textContent.includes('before the restart')"))
    self.world.stop()
    self.assertTrue(page.wait_for("!document.getElementById('gone').hidden"))
    self.assertIn("r2ccd does not answer", page.evaluate("document.getElementById('gone').textContent"))
    self.world.start()
    self.world.set_again()
    self.assertTrue(page.wait_for("document.getElementById('gone').hidden"))
    later = self.open()
    self.assertTrue(later.wait_for("document.getElementById('events').textContent.includes('before the restart')"),
                    "the time line ends at a restart")
    self.assertTrue(later.wait_for("document.getElementById('time').textContent.includes('node0055/rail1')"))
    self.assertTrue(page.wait_for("document.getElementById('events').textContent.match(/daemon-started/g)?.length >= 2"),
                    "the open page did not go on with the events")

  def test_jobs_and_what_was_saved(self):
    page = self.open()
    # At once, before the page shows what it really has.
    rows, saved = page.evaluate("""import('/page/view.js').then((view) => {
      const job = {name: '<b>train</b>', run: '7', processes: 8, peers: 3, left: 3, rails: 4, faults: 2, longestMs: 7.4,
        replayed: 1536, gaveUp: 0};
      const held = {function: 'AllReduce', number: 12, communicator_name: '<i>tp0</i>', rank: 3, ranks: 8, nic: 'rail1', ms: 280};
      view.showJobs([{...job, stands: true}, {...job, atRisk: true}, {...job, held}]);
      view.showSaved([{since_ns: '0', until_ns: '86400000000000', faults_masked: 2, restarts: 1, gpu_hours_low: 1.25,
        gpu_hours_high: 40, reduced_ns: '7000000', died: [{cause: 'no-rail', jobs: 1}]}]);
      const texts = (elements) => [...elements].map((one) => one.textContent).join('|');
      return [[...document.querySelectorAll('#jobs tbody tr')].map((row) => texts(row.cells)),
        texts(document.querySelectorAll('#saved dd'))];
    })""")
    waited = "AllReduce 12 of <i>tp0</i> (rank 3 of 8) waited for rail1, 280 ms"
    self.assertEqual(rows, [f"<b>train</b> (7){held}|{state}|8|3|3 of 4|2|7 ms|1.5 KiB"
                            for state, held in (("no progress", ""), ("at risk", ""), ("fewer rails", waited))])
    self.assertEqual(saved, "2 in 24 h|1 in 24 h|1.3 to 40 in 24 h|7 ms in 24 h|1 in 24 h")

  def test_a_drill_needs_its_name_typed(self):
    page = self.open()
    # As for an operator whose certificate has DRILL; that the daemon asks for it is R2ccdHttpTest's.
    page.evaluate("""import('/page/panel.js').then((panel) => {
      globalThis.acts = [];
      const show = (nic) => panel.showNic(section, {nic, why: null, error: '', model: {own: 'own'}, who: {may_drill: true},
        message: '', nowMs: Date.now()}, (action, one, typed, seconds) => acts.push([action, one.key, typed, seconds]), () => {});
      const section = document.body.appendChild(document.createElement('section'));
      section.id = 'own';
      globalThis.nic = {key: 'own/rail1', node: 'own', name: 'rail1', kind: 'healthy', reason: 'link up', sinceMs: 1, isDrill: false};
      globalThis.show = show;
      show(nic);
    })""")
    button = "document.querySelector('#own form button')"
    page.evaluate("document.querySelector('#own input').focus()")
    for key in "own/rail":
      page.press(key)
    self.assertTrue(page.evaluate(f"{button}.disabled"))
    page.press("Enter")
    self.assertEqual(page.evaluate("acts"), [])
    page.press("1")
    self.assertFalse(page.evaluate(f"{button}.disabled"))
    page.press("Enter")
    self.assertEqual(page.evaluate("acts"), [["fail", "own/rail1", "own/rail1", 60]])
    page.evaluate("show({...nic, kind: 'failed', isDrill: true, drillEndsMs: Date.now() + 61000})")
    self.assertRegex(page.evaluate("document.querySelector('#own [data-ends]').textContent"), "^1:0[01]$")
    self.assertTrue(page.wait_for("document.querySelector('#own [data-ends]').textContent.startsWith('0:')"), "it does not count down")
    # Of another node's NIC there is the way to that node's page, and nothing to act with.
    for more in ("", ", isDrill: true, drillEndsMs: Date.now() + 61000"):
      page.evaluate(f"show({{...nic, node: 'n2', key: 'n2/rail1'{more}}})")
      self.assertEqual(page.evaluate("document.querySelector('#own a').href"), f"http://n2:{self.world.port}/#nic=n2%2Frail1")
      self.assertEqual(page.evaluate("document.querySelectorAll('#own input, #own [data-focus=restore]').length"), 0)
    page.evaluate("show({...nic, node: 'evil.com/', key: 'evil.com//rail1'})")
    self.assertEqual(page.evaluate("document.querySelectorAll('#own a').length"), 0)

  def test_accessible(self):
    if not os.path.exists(_AXE):
      self.skipTest(f"needs browser: {_AXE} is not there; bazelw makes it by npm")
    with open(_AXE, encoding="utf-8") as file:
      axe = file.read()
    self.fail_nic(60, 4, "DEGRADED", "carries half of its due")
    for dark in (False, True):
      page = self.open("#nic=node0060%2Frail4")
      page.colours(dark)
      self.assertTrue(page.wait_for("document.querySelector('#nic .verdict')?.textContent.includes('node0060')"))
      self.assertTrue(page.wait_for("document.getElementById('time').textContent.includes('node0060')"))
      page.evaluate(f"{axe}; 0")
      found = page.evaluate("axe.run(document, {resultTypes: ['violations']}).then((r) => r.violations.map((v) => "
                            "({id: v.id, impact: v.impact, nodes: v.nodes.slice(0, 3).map((n) => n.html + n.failureSummary)})))")
      self.assertEqual([one for one in found if one["impact"] in ("serious", "critical")], [])
