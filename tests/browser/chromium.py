"""Chromium without a window, driven over its debugging pipe: Python's standard library only.

    with Chromium() as browser:
        page = browser.open("/tmp/report.html")
        page.evaluate("document.title")
        page.press("Tab")
        assert not page.problems and not page.requests

The network is off: in a network namespace without any interface where one can be had, and in
the browser's own emulation everywhere. What a page asks for all the same is in `requests`.
"""
import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

WAIT_SECONDS = 240
KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40,
        "Home": 36, "Backspace": 8}


class BrowserError(Exception):
    pass


def find():
    """The browser's path, or None: the caller skips and says so."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Chromium:
    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="rlscope-browser-")
        self.next_id = 0
        self.buffer = b""
        self.pages = {}
        # The browser reads commands from its descriptor 3 and writes to 4.
        child_reads, self.to_browser = os.pipe()
        self.from_browser, child_writes = os.pipe()
        command = without_network() + [
            "/bin/sh", "-c", f'exec "$@" 3<&{child_reads} 4>&{child_writes}', "sh", find(), "--headless=new", "--no-sandbox",
            "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
            "--disable-component-update", "--remote-debugging-pipe", f"--user-data-dir={self.folder.name}", "about:blank"]
        with open(pathlib.Path(self.folder.name, "log"), "wb") as log:
            self.process = subprocess.Popen(command, pass_fds=(child_reads, child_writes), stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log, start_new_session=True)
        os.close(child_reads)
        os.close(child_writes)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        try:
            self.send("Browser.close")
            self.process.wait(10)
        except (BrowserError, OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.to_browser)
        os.close(self.from_browser)
        self.folder.cleanup()

    def log(self):
        return pathlib.Path(self.folder.name, "log").read_text(errors="replace")[-2000:]

    def send(self, method, session=None, **parameters):
        """Sends one command and returns its result; events that come meanwhile go to their pages."""
        self.next_id += 1
        message = {"id": self.next_id, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to_browser, data):]
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            answer = self.receive(deadline)
            if answer.get("id") == message["id"]:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            if answer.get("sessionId") in self.pages:
                self.pages[answer["sessionId"]].take(answer)

    def receive(self, deadline):
        while b"\0" not in self.buffer:
            ready = select.select([self.from_browser], [], [], max(0, deadline - time.monotonic()))[0]
            more = os.read(self.from_browser, 1 << 16) if ready else b""
            if not more:
                raise BrowserError("the browser does not answer:\n" + self.log())
            self.buffer += more
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def open(self, path, width=1280, height=900, dark=False):
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = self.pages[session] = Page(self, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.send(f"{domain}.enable")
        page.send("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=-1, uploadThroughput=-1)
        page.show_as(width, height, dark)
        page.load(path)
        return page


class Page:
    def __init__(self, browser, session):
        self.browser = browser
        self.session = session
        self.problems = []      # what the console shows as error or warning, and exceptions
        self.requests = []      # addresses asked for, but for files and data
        self.loaded = False

    def send(self, method, **parameters):
        return self.browser.send(method, self.session, **parameters)

    def take(self, event):
        method, parameters = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.problems.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
            self.problems.append(str([argument.get("value") for argument in parameters["args"]]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.problems.append(parameters["entry"]["text"])
        elif method == "Page.javascriptDialogOpening":
            self.problems.append("a dialog: " + parameters["message"])
        elif method == "Page.loadEventFired":
            self.loaded = True
        elif method == "Network.requestWillBeSent":
            url = parameters["request"]["url"]
            if not url.startswith(("file:", "data:", "about:", "blob:")):
                self.requests.append(url)

    def show_as(self, width, height, dark=False, media=""):
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.send("Emulation.setEmulatedMedia", media=media,
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def load(self, path):
        """Opens a file and waits until it is loaded, its scripts run."""
        self.loaded = False
        began = time.monotonic()
        self.send("Page.navigate", url=pathlib.Path(path).resolve().as_uri())
        while not self.loaded and time.monotonic() - began < WAIT_SECONDS:
            self.evaluate("0")
        if not self.loaded:
            raise BrowserError(f"{path} does not load")
        self.load_seconds = time.monotonic() - began

    def evaluate(self, expression):
        """The value of an expression, promises waited for; an exception in it is one here."""
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise BrowserError(f"{expression}: {answer['exceptionDetails'].get('exception', {}).get('description')}")
        return answer["result"].get("value")

    def wait_for(self, expression):
        deadline = time.monotonic() + WAIT_SECONDS
        while not self.evaluate(expression):
            if time.monotonic() > deadline:
                raise BrowserError(f"never became true: {expression}")
            time.sleep(0.02)

    def press(self, key, shift=False):
        code = KEYS.get(key)
        event = {"key": key, "modifiers": 8 if shift else 0,
                 "windowsVirtualKeyCode": code if code else ord(key.upper()[0])}
        text = "\r" if key == "Enter" else key if len(key) == 1 else ""
        self.send("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **event)
        self.send("Input.dispatchKeyEvent", type="keyUp", **event)

    def type(self, text):
        for letter in text:
            self.press(letter)

    def focus_by_tab(self, expression, most=200):
        """Presses Tab until the focused element, `it` in the expression, is the one meant."""
        for _ in range(most):
            self.press("Tab")
            if self.evaluate(f"((it) => Boolean({expression}))(document.activeElement)"):
                return
        raise BrowserError(f"not reached with Tab: {expression}")

    def screenshot(self, path, whole=True):
        answer = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        pathlib.Path(path).write_bytes(base64.b64decode(answer["data"]))

    def print(self, path):
        answer = self.send("Page.printToPDF", printBackground=True)
        pathlib.Path(path).write_bytes(base64.b64decode(answer["data"]))


def without_network():
    """A command prefix for a network namespace of its own, where this process may make one."""
    prefix = ["unshare", "--net", "--"]
    try:
        works = subprocess.run(prefix + ["true"], stderr=subprocess.DEVNULL, check=False).returncode == 0
    except OSError:
        works = False
    return prefix if works else []
