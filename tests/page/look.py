"""Takes pictures of r2ccd's page for a person to look at, and measures it: ./bazelw run //tests/page:look -- --out DIR; needs root."""

import argparse
import json
import os
import sys
import tempfile

from tests.page import browser, stage

# Of 1,000 nodes: a rack whose leaf switches are off, and single NICs in each state. The reasons are those of the programs.
FAULTS = [(320, 335, -1, "FAILED", "link down"), (17, 17, 3, "FAILED", "link down"),
          (412, 412, 5, "FAILED", "port of node0412/rail5 (NIC, cable or switch port): silent to "
                                  "node0413/rail5, node0414/rail5; node0413/rail5, node0414/rail5 answer others"),
          (77, 77, 0, "DEGRADED", "link runs at 100 Gbit/s instead of 400 Gbit/s"),
          (640, 640, 2, "SUSPECT", "a job gave up its link to node0641/rail2"),
          (801, 801, 7, "PROVING", "link up again: proving for 600 ms"),
          (802, 802, 7, "DRAINED", "drained by the operator"), (900, 903, 1, "UNCABLED", "link down, and it was never up: no cable yet")]
LONG_TASKS = """
  globalThis.longest = 0; globalThis.tasks = [];
  new PerformanceObserver((list) => { for (const one of list.getEntries()) { tasks.push(Math.round(one.duration));
    longest = Math.max(longest, one.duration); } }).observe({type: 'longtask', buffered: true});"""

def ready(page):
  return page.wait_for("document.querySelector('#answer')?.hasAttribute('data-level') && "
                       "document.getElementById('canvas').hasAttribute('data-failed')")

def measure(page, world):
  """Figures of the page over `world`, which has 1,000 nodes."""
  page.call("Page.addScriptToEvaluateOnNewDocument", {"source": LONG_TASKS})
  page.open(world.url)
  ready(page)
  figures = {"first_paint_ms": page.evaluate("performance.getEntriesByName('first-contentful-paint')[0]?.startTime"),
             "shown_ms": page.evaluate("performance.now()")}
  # The cell is drawn when the canvas says so; the clock is the browser's, which waits for it without a pause.
  for i in range(3):
    before = page.evaluate("Number(document.getElementById('canvas').getAttribute('data-failed'))")
    page.evaluate(f"""globalThis.changed = new Promise((resolve) => new MutationObserver(() => {{
      if (Number(document.getElementById('canvas').getAttribute('data-failed')) > {before}) resolve(Date.now()); }})
      .observe(document.getElementById('canvas'), {{attributes: true}})); 0""")
    begin = page.evaluate("Date.now()")
    stage.run("ip", "link", "set", "far0", "down")
    figures.setdefault("cut_veth_ms", []).append(page.evaluate("changed") - begin)
    stage.run("ip", "link", "set", "far0", "up")
    page.wait_for(f"Number(document.getElementById('canvas').getAttribute('data-failed')) == {before}")
  page.browser.pump(8)
  figures["long_tasks_ms"] = page.evaluate("tasks")
  return figures

def main():
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument("--out", required=True, help="the folder of the pictures")
  parser.add_argument("--r2ccd", default="daemon/r2ccd")
  parser.add_argument("--fleet", default="tests/page/fleet")
  options = parser.parse_args()
  if why := stage.why_not():
    sys.exit(why)
  os.makedirs(options.out, exist_ok=True)
  stage.enter_namespace()
  chrome = browser.Browser(tempfile.mkdtemp(prefix="r2cc-chrome."))
  picture = lambda page, name: page.screenshot(os.path.join(options.out, f"{name}.png"), whole=True)
  try:
    world = stage.Stage(options.r2ccd, options.fleet, 1000)
    page = chrome.page()
    print(json.dumps(measure(page, world)), flush=True)
    picture(page, "thousand-healthy")
    for fault in FAULTS:
      world.set(*fault)
    page.wait_for("Number(document.getElementById('canvas').getAttribute('data-failed')) >= 130")
    page.browser.pump(1)
    picture(page, "thousand-light")
    page.colours(True)
    page.evaluate("location.hash = '#nic=node0017/rail3'")
    page.wait_for("document.querySelector('#nic .verdict')?.textContent.length > 25")
    page.browser.pump(1)
    picture(page, "thousand-dark-verdict")
    page.colours(False)
    world.kill()
    page.wait_for("!document.getElementById('gone').hidden")
    page.browser.pump(0.5)
    picture(page, "daemon-gone")
    world.close()
    small = stage.Stage(options.r2ccd, options.fleet, 23)
    small.set(4, 4, -1, "FAILED", "link down")
    small.set(11, 11, 6, "FAILED", "link down")
    small.set(0, 22, 2, "DEGRADED", "link runs at 100 Gbit/s instead of 200 Gbit/s")
    page.evaluate("location.hash = ''")
    page.open(small.url)
    page.wait_for("Number(document.getElementById('canvas')?.getAttribute('data-failed')) >= 8")
    page.browser.pump(1)
    picture(page, "small-light")
    page.call("Emulation.setDeviceMetricsOverride", {"width": 420, "height": 800, "deviceScaleFactor": 1, "mobile": False})
    page.browser.pump(1)
    picture(page, "narrow")
    small.close()
    page.call("Emulation.setDeviceMetricsOverride", {"width": 1440, "height": 1000, "deviceScaleFactor": 1, "mobile": False})
    empty = stage.Stage(options.r2ccd, options.fleet, 0)
    page.open(empty.url)
    ready(page)
    page.browser.pump(1)
    picture(page, "one-node")
    empty.close()
    for parameters in page.events("Log.entryAdded"):
      print(parameters["entry"]["level"], parameters["entry"]["text"], parameters["entry"].get("url"))
    for parameters in page.events("Runtime.exceptionThrown"):
      print("exception", parameters["exceptionDetails"].get("exception", {}).get("description"))
  finally:
    chrome.close()

if __name__ == "__main__":
  main()
