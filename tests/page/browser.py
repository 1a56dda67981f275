"""A headless Chromium, driven by its DevTools protocol over a pipe."""

import base64
import json
import os
import select
import shutil
import subprocess
import time

PATIENCE_S = 20


def why_not():
  """Why no browser can run here; empty: one can."""
  return "" if shutil.which("chromium") else "needs browser: there is no chromium; bazelw installs bazel/packages/browser.txt"


class Browser:
  """One Chromium with a profile of its own in `folder`. Ends with close()."""

  def __init__(self, folder, arguments=()):
    to_browser, self._write = os.pipe()
    self._read, from_browser = os.pipe()
    command = ["chromium", "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--no-first-run",
               "--hide-scrollbars",
               "--disable-background-networking", "--disable-component-update", "--force-color-profile=srgb", f"--user-data-dir={folder}",
               *arguments]
    shell = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
    self._log = open(os.path.join(folder, "chromium.log"), "wb")
    self._process = subprocess.Popen(["bash", "-c", shell, "chromium", *command], pass_fds=(to_browser, from_browser), stdout=self._log,
                                     stderr=subprocess.STDOUT, env={**os.environ, "HOME": folder})
    os.close(to_browser)
    os.close(from_browser)
    self._buffer = b""
    self._last = 0
    self.events = []  # of all pages, as (session, method, parameters)

  def close(self):
    self._process.kill()
    self._process.wait()
    os.close(self._read)
    os.close(self._write)
    self._log.close()

  def _next(self, until):
    while b"\0" not in self._buffer:
      ready, _, _ = select.select([self._read], [], [], max(0, until - time.monotonic()))
      if not ready:
        return None
      got = os.read(self._read, 1 << 20)
      if not got:
        raise RuntimeError(f"the browser has ended: see {self._log.name}")
      self._buffer += got
    message, self._buffer = self._buffer.split(b"\0", 1)
    return json.loads(message)

  def pump(self, seconds):
    """Takes the events of the next `seconds`."""
    until = time.monotonic() + seconds
    while (message := self._next(until)) is not None:
      self._take(message)

  def _take(self, message):
    if "method" in message:
      self.events.append((message.get("sessionId"), message["method"], message["params"]))

  def call(self, method, parameters=None, session=None):
    self._last += 1
    request = {"id": self._last, "method": method, "params": parameters or {}}
    if session:
      request["sessionId"] = session
    data = json.dumps(request).encode() + b"\0"
    while data:
      data = data[os.write(self._write, data):]
    until = time.monotonic() + PATIENCE_S
    while (message := self._next(until)) is not None:
      if message.get("id") == self._last:
        if "error" in message:
          raise RuntimeError(f"{method}: {message['error']}")
        return message["result"]
      self._take(message)
    raise TimeoutError(f"{method}: no answer in {PATIENCE_S} s")

  def page(self, width=1440, height=1000, dark=False):
    target = self.call("Target.createTarget", {"url": "about:blank"})["targetId"]
    session = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
    page = Page(self, session, target)
    for domain in ("Page", "Runtime", "Network", "Log"):
      page.call(f"{domain}.enable")
    page.call("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
    page.colours(dark)
    return page


class Page:
  """One tab."""

  def __init__(self, browser, session, target):
    self.browser = browser
    self.session = session
    self._target = target

  def close(self):
    self.browser.call("Target.closeTarget", {"targetId": self._target})

  def call(self, method, parameters=None):
    return self.browser.call(method, parameters, self.session)

  def events(self, method):
    return [parameters for session, name, parameters in self.browser.events if session == self.session and name == method]

  def colours(self, dark):
    self.call("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})

  def open(self, url):
    return self.call("Page.navigate", {"url": url})

  def evaluate(self, expression, as_the_page=False):
    """The value of a JavaScript expression, or of the promise that it is. `as_the_page`: the page's policy about eval() is in force."""
    got = self.call("Runtime.evaluate", {"expression": expression, "awaitPromise": True, "returnByValue": True,
                                         "allowUnsafeEvalBlockedByCSP": not as_the_page})
    if "exceptionDetails" in got:
      raise RuntimeError(f"{expression[:200]}: {got['exceptionDetails'].get('exception', {}).get('description', got['exceptionDetails'])}")
    return got["result"].get("value")

  def wait_for(self, expression, patience_s=PATIENCE_S):
    """Waits until the expression is true, and returns its value; the last value after `patience_s`."""
    until = time.monotonic() + patience_s
    while True:
      value = self.evaluate(expression)
      if value or time.monotonic() > until:
        return value
      self.browser.pump(0.02)

  def press(self, key, text=""):
    codes = {"Enter": 13, "Escape": 27, "Tab": 9, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
    code = codes.get(key, ord(key.upper()) if len(key) == 1 else 0)
    down = {"type": "keyDown", "key": key, "windowsVirtualKeyCode": code}
    if text or len(key) == 1 or key == "Enter":
      down["text"] = text or ("\r" if key == "Enter" else key)
    self.call("Input.dispatchKeyEvent", down)
    self.call("Input.dispatchKeyEvent", {"type": "keyUp", "key": key, "windowsVirtualKeyCode": code})

  def screenshot(self, path, whole=False):
    parameters = {"format": "png"}
    if whole:
      size = self.call("Page.getLayoutMetrics")["cssContentSize"]
      parameters.update(captureBeyondViewport=True, clip={"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1})
    with open(path, "wb") as file:
      file.write(base64.b64decode(self.call("Page.captureScreenshot", parameters)["data"]))
