"""Drives Debian's Chromium without further packages: the DevTools protocol through a pipe.

    with Chromium() as browser:
        page = browser.open("file:///...", width=360)
        page.value("document.title")

Messages are JSON ended by a zero byte: we write to its descriptor 3 and read from 4."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

BROWSER = "chromium"
FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
         "--no-first-run", "--disable-background-networking", "--disable-component-update",
         "--disable-extensions", "--mute-audio", "--autoplay-policy=user-gesture-required",
         "--host-resolver-rules=MAP * ~NOTFOUND", "--remote-debugging-pipe"]


def available():
    return shutil.which(BROWSER) is not None


class Chromium:
    def __init__(self, timeout=60):
        self.timeout = timeout
        self.number, self.unread, self.events = 0, b"", []
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_browser, self.out = os.pipe()
        self.input, from_browser = os.pipe()

        def pipes():  # in the child: the ends it knows as 3 and 4
            here, there = os.dup(to_browser), os.dup(from_browser)
            os.dup2(here, 3)
            os.dup2(there, 4)

        self.process = subprocess.Popen(
            [BROWSER, *FLAGS, f"--user-data-dir={self.folder.name}", "about:blank"],
            preexec_fn=pipes, close_fds=False, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.call("Browser.close")
        except (OSError, TimeoutError):
            self.process.kill()
        self.process.wait()
        self.folder.cleanup()

    def call(self, method, session=None, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.out, data):]
        return self.wait(lambda m: m.get("id") == message["id"], method)

    def wait(self, wanted, what):
        """The result of the first message that is wanted; events are kept."""
        end = time.monotonic() + self.timeout
        while True:
            message = self.read(end, what)
            if "id" not in message:
                self.events.append(message)
            if wanted(message):
                if "error" in message:
                    raise RuntimeError(f"{what}: {message['error']['message']}")
                return message.get("result", message)

    def read(self, end, what):
        while b"\0" not in self.unread:
            ready, _, _ = select.select([self.input], [], [], max(0, end - time.monotonic()))
            if not ready:
                raise TimeoutError(f"no answer to {what} in {self.timeout} s")
            piece = os.read(self.input, 1 << 20)
            if not piece:
                raise OSError("Chromium went away")
            self.unread += piece
        message, self.unread = self.unread.split(b"\0", 1)
        return json.loads(message)

    def open(self, address, width, height=800, dark=False):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        return Tab(self, session, address, width, height, dark)


class Tab:
    def __init__(self, browser, session, address, width, height, dark):
        self.browser, self.session, self.width, self.height = browser, session, width, height
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=2 if width < 600 else 1, mobile=width < 600)
        self.prefer("dark" if dark else "light")
        self.call("Page.navigate", url=address)
        browser.wait(lambda m: m.get("method") == "Page.loadEventFired", "loading")
        self.settle()

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def prefer(self, scheme):
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": scheme}])

    def settle(self):
        """Until two frames have been drawn."""
        self.value("new Promise(f => requestAnimationFrame(() => requestAnimationFrame(f)))"
                   ".then(() => 1)")

    def value(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True,
                           returnByValue=True, userGesture=True)
        if "exceptionDetails" in answer:
            raise AssertionError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def centre(self, selector):
        """Where the middle of an element stands on the screen, scrolled to if need be."""
        quoted = json.dumps(selector)
        box = self.value(f"(() => {{ const n = document.querySelector({quoted});"
                         "n.scrollIntoView({block: 'center', behavior: 'instant'});"
                         "const b = n.getBoundingClientRect();"
                         "return [b.x, b.y, b.width, b.height]; })()")
        return box[0] + box[2] / 2, box[1] + box[3] / 2

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def hover(self, selector, share=0.5):
        """The pointer at a share of an element's width."""
        x, y = self.centre(selector)
        width = self.value(f"document.querySelector({json.dumps(selector)}).clientWidth || "
                           f"document.querySelector({json.dumps(selector)})"
                           ".getBoundingClientRect().width")
        self.mouse("mouseMoved", x + (share - 0.5) * width, y)
        self.settle()

    def click(self, selector):
        x, y = self.centre(selector)
        self.mouse("mousePressed", x, y, button="left", clickCount=1)
        self.mouse("mouseReleased", x, y, button="left", clickCount=1)
        self.settle()

    def key(self, key):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)
        self.settle()

    def complaints(self):
        """Errors of the console, exceptions, and everything asked of the network."""
        found = []
        for event in self.browser.events:
            method, given = event.get("method"), event.get("params", {})
            if event.get("sessionId") != self.session:
                continue
            if method == "Runtime.exceptionThrown":
                found.append(given["exceptionDetails"]["exception"].get("description"))
            elif method == "Log.entryAdded" and given["entry"]["level"] in ("error", "warning"):
                found.append(given["entry"]["text"])
            elif method == "Runtime.consoleAPICalled" and given["type"] in ("error", "warning"):
                found.append(str(given["args"]))
            elif method == "Network.requestWillBeSent":
                address = given["request"]["url"]
                if not address.startswith(("file:", "blob:", "data:")):
                    found.append(f"asked the network for {address}")
        return found

    def screenshot(self, file, of="html"):
        """A picture of an element, whole; "html": of the page."""
        box = self.value(f"(() => {{ const b = document.querySelector({json.dumps(of)})"
                         ".getBoundingClientRect();"
                         "return [b.x + scrollX, b.y + scrollY, b.width, b.height]; })()")
        clip = dict(zip(("x", "y", "width", "height"), box), scale=1)
        picture = self.call("Page.captureScreenshot", format="png", clip=clip,
                            captureBeyondViewport=True)["data"]
        with open(file, "wb") as out:
            out.write(base64.b64decode(picture))
