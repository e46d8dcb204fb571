# SPDX-License-Identifier: GPL-3.0-or-later
"""Headless Chromium, driven through the DevTools protocol on a pair of pipes: messages are JSON with
a NUL behind them.
"""
import base64
import fcntl
import json
import os
import re
import select
import shutil
import signal
import string
import tempfile
import time

HANG_SECONDS = 120
PROGRAMS = ("chromium", "chromium-headless-shell", "chromium-browser")
# Strings, and words that are no properties: names of the script of the page.
WORD = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|(?<![\w$])(?:(?<!\.)|(?<=\.\.\.))[A-Za-z]+\b(?!:)""")


def kept_names():
    """Names of the script of opreport's page that tests use: minify.awk makes $a, $b ... of them."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "page", "web", "page.js"),
              encoding="utf-8") as stream:
        words = " ".join(re.findall(r"^// kept: (.*)", stream.read(), re.M)).split()
    return {word: "$" + letter for word, letter in zip(words, string.ascii_letters) if len(word) > 2}


KEPT = kept_names()


def program():
    """The path of the browser, or None."""
    return next((path for path in map(shutil.which, PROGRAMS) if path), None)


class Browser:
    """One page. All that it writes to the console, and every request but that for the file itself,
    are in `complaints`.
    """

    def __init__(self, width=1280, height=900):
        self.home = tempfile.mkdtemp(prefix="opd-browser.")
        to_browser, from_browser = os.pipe(), os.pipe()
        ends = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in (to_browser[0], from_browser[1])]
        self.out, self.inp = to_browser[1], from_browser[0]
        with open(os.path.join(self.home, "log"), "wb") as log:
            self.pid = os.posix_spawn(
                program(), [program(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                            "--hide-scrollbars", "--disable-extensions", "--disable-background-networking",
                            "--user-data-dir=" + self.home, "--remote-debugging-pipe", "about:blank"],
                dict(os.environ, HOME=self.home, LC_ALL="C.UTF-8", TZ="UTC"), setsid=True,
                file_actions=[(os.POSIX_SPAWN_DUP2, ends[0], 3), (os.POSIX_SPAWN_DUP2, ends[1], 4),
                              (os.POSIX_SPAWN_DUP2, log.fileno(), 1), (os.POSIX_SPAWN_DUP2, log.fileno(), 2)])
        for fd in (to_browser[0], from_browser[1], *ends):
            os.close(fd)
        self.buffer, self.number, self.session, self.events, self.complaints, self.address = b"", 0, None, [], [], None
        target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        self.size(width, height)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        os.killpg(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.out)
        os.close(self.inp)
        shutil.rmtree(self.home, ignore_errors=True)

    def read(self, until):
        """The next message."""
        while b"\0" not in self.buffer:
            if not select.select([self.inp], [], [], max(0, until - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            data = os.read(self.inp, 1 << 20)
            if not data:
                with open(os.path.join(self.home, "log"), errors="replace", encoding="utf-8") as log:
                    raise RuntimeError("the browser ended: " + log.read()[-2000:])
            self.buffer += data
        message, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(message)
        if "method" in message:
            self.note(message["method"], message["params"])
        return message

    def note(self, method, params):
        self.events.append(method)
        if method in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
            self.complaints.append(json.dumps(params)[:2000])
        if method == "Network.requestWillBeSent" and params["request"]["url"].split("#")[0] != self.address:
            self.complaints.append("request of " + params["request"]["url"][:200])

    def call(self, method, **params):
        self.number += 1
        message = dict(id=self.number, method=method, params=params)
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + HANG_SECONDS
        while True:
            answer = self.read(until)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError("%s: %s" % (method, answer["error"]))
                return answer["result"]

    def size(self, width, height, ratio=1):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=ratio, mobile=width < 500)

    def theme(self, name):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def open(self, path, fragment=""):
        self.address = "file://" + path
        self.events.clear()
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=self.address + fragment)
        until = time.monotonic() + HANG_SECONDS
        while self.run("document.readyState + (location.protocol === 'file:')") != "completetrue":
            if time.monotonic() > until:
                raise TimeoutError("the page does not load")

    def run(self, script):
        """The value of an expression on the page, where names that are kept have short ones."""
        script = WORD.sub(lambda found: KEPT.get(found.group(), found.group()), script)
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"])[:2000])
        return answer["result"].get("value")

    def key(self, key, text=None):
        codes = {"ArrowDown": 40, "ArrowUp": 38, "ArrowLeft": 37, "ArrowRight": 39, "Enter": 13, "Escape": 27, "Home": 36, "Tab": 9}
        if text is None and len(key) == 1:
            text = key
        for kind in ("keyDown", "keyUp"):
            extra = {"text": text} if text and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key,
                      windowsVirtualKeyCode=codes.get(key, ord(key.upper()) if key.isalnum() and len(key) == 1 else 0), **extra)

    def click(self, x, y, button="left"):
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, clickCount=1,
                      button="none" if kind == "mouseMoved" else button)

    def drag(self, start, end):
        """From one place to another, with a stop between them."""
        middle = [(a + b) / 2 for a, b in zip(start, end)]
        for kind, (x, y), button in (("mouseMoved", start, "none"), ("mousePressed", start, "left"), ("mouseMoved", middle, "left"),
                                     ("mouseMoved", end, "left"), ("mouseReleased", end, "left")):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, clickCount=1, button=button,
                      buttons=1 if button == "left" and kind != "mouseReleased" else 0)

    def grant(self, *permissions):
        session, self.session = self.session, None
        self.call("Browser.grantPermissions", permissions=permissions)
        self.session = session

    def pdf(self):
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"])

    def shot(self, path, whole=False):
        extra = {"captureBeyondViewport": True} if whole else {}
        with open(path, "wb") as stream:
            stream.write(base64.b64decode(self.call("Page.captureScreenshot", format="png", **extra)["data"]))
