#!/usr/bin/python3
"""Play on, the model in the page of `lagwise report`, in a real browser.

    play_on_test.py PROGRAM FOLDER MODULE      screenshots are kept in FOLDER

A small model of music is trained for a moment, exported and put into a page with MODULE,
lagwise.wasm. Exit code 77: there is no browser or no module, so nothing was tested; with
CI=true that is a failure."""

import json
import os
import re
import subprocess
import sys
import time
import unittest
from pathlib import Path

import chromium

SKIPPED = 77
PROGRAM, FOLDER, MODULE = "", Path(), Path()
PROMPT = 64  # tokens
RECIPE = """[model]
layers = 2
dim = 32
heads = 2
encoding = "rope:layout=interleaved,decay=alibi"
attention = "linear:map=none,denominator=none,norm=rms_head,qk_bias=true"

[data]
task = "music:scheme=groove,styles=4,songs=40"
length = 128

[train]
steps = 80
batch = 8
lr = 1e-2
warmup = 10
"""
# What comes from the model in the page, until it has come to a beat.
LISTEN = """(sampling, beat) => new Promise((done, fail) => {
  const {playOn, sections} = lagwise.data;
  const roll = sections.flatMap((s) => s.blocks).find((b) => b.kind === 'music')
    .pieces[0].rolls[0];
  const all = {tokens: [], notes: [], bytes: [], tracks: []};
  const worker = lagwise.startModel(
    {module: lagwise.decoded(playOn.module), model: lagwise.decoded(playOn.model),
     prompt: roll.tokens, sampling}, (message) => {
      if (message.failed) fail(new Error(message.failed));
      if (message.tracks) all.tracks = message.tracks;
      if (!message.notes) return;
      all.tokens.push(...message.tokens);
      all.bytes.push(message.bytes);
      for (let i = 0; i < message.notes.length; i += 5)
        all.notes.push([...message.notes.slice(i, i + 5)]);
      if (message.beat < beat) return;
      worker.terminate();
      done(all);
    });
  worker.postMessage({until: beat});
})"""


def lagwise(*words):
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def make_model():
    run = FOLDER / "run"
    if not (FOLDER / "small.lagwise").exists():
        (FOLDER / "recipe.toml").write_text(RECIPE)
        lagwise("train", FOLDER / "recipe.toml", "--out", run)
        lagwise("generate", run, "--prompt", "test:0", "--prompt-tokens", PROMPT, "--length", 200,
                "--top-p", 0.95, "--out", run / "samples", "--no-sound")
        lagwise("export", run, "--weights", "int8", "--out", FOLDER / "small.lagwise")
    return run


class PlayOnTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.run_folder, cls.page = make_model(), FOLDER / "play-on.html"
        cls.report(MODULE, cls.page)
        cls.browser = chromium.Chromium()
        cls.addClassCleanup(cls.browser.__exit__)

    @classmethod
    def report(cls, module, page):
        lagwise("report", cls.run_folder, "--play-on", cls.run_folder, "--model",
                FOLDER / "small.lagwise", "--module", module, "--out", page)

    def open(self, width, dark=False):
        tab = self.browser.open(self.page.as_uri(), width, dark=dark)
        self.addCleanup(lambda: self.assertEqual(tab.complaints(), []))
        return tab

    def state(self, tab):
        return tab.value("document.querySelector('.live-take .time').textContent")

    def tokens(self, tab):
        found = re.search(r"([0-9.,]+)(k?) tokens", self.state(tab))
        if not found:
            return 0
        return float(found[1].replace(",", "")) * (1000 if found[2] else 1)

    def wait(self, what, happened, seconds=150):
        end = time.monotonic() + seconds
        while not happened():
            self.assertLess(time.monotonic(), end, f"no {what} in {seconds} s")
            time.sleep(0.1)

    def ink(self, tab):
        """How far the roll has colour, as that of notes, in pixels from the first beat."""
        return tab.value("""[...document.querySelectorAll('.live-sheet canvas')].map((c) => {
          const copy = new OffscreenCanvas(c.width, c.height)
            .getContext('2d', {willReadFrequently: true});
          copy.drawImage(c, 0, 0);
          const d = copy.getImageData(0, 0, c.width, c.height).data;
          let right = -1;
          for (let i = 0; i < d.length; i += 4)
            if (Math.max(d[i], d[i + 1], d[i + 2]) - Math.min(d[i], d[i + 1], d[i + 2]) > 40)
              right = Math.max(right, i / 4 % c.width);
          return right < 0 ? 0 : c.offsetLeft + right * c.offsetWidth / c.width;
        }).reduce((a, b) => Math.max(a, b), 0)""")

    def test_plays_on_while_the_roll_grows(self):
        for width, dark in ((1280, False), (390, True)):
            tab = self.open(width, dark)
            self.assertEqual(tab.value("document.querySelector('.play.on').textContent"),
                             "∞ Play on")
            tab.click(".play.on")
            self.wait("sound", lambda t=tab: "bar" in self.state(t))
            first, tokens = self.ink(tab), self.tokens(tab)
            self.assertGreater(first, 0)
            self.wait("300 tokens", lambda t=tab, n=tokens: self.tokens(t) >= max(300, n + 1))
            cursor = "document.querySelector('.live-sheet .cursor').style.transform"
            before = tab.value(cursor)
            time.sleep(1)
            self.assertNotEqual(tab.value(cursor), before, "the cursor stands still")
            self.wait("growth", lambda t=tab, x=first: self.ink(t) > x)
            self.assertLessEqual(tab.value("document.documentElement.scrollWidth"), width)
            tab.screenshot(FOLDER / f"play-on-{width}.png", of=".music")
            tab.click(".play.on")
            self.assertEqual(tab.value("document.querySelector('.play.on').textContent"),
                             "∞ Play on")
            stopped = tab.value(cursor)
            time.sleep(0.3)
            self.assertEqual(tab.value(cursor), stopped)

    def test_starts_and_stops_by_keys_and_falls_silent_for_the_others(self):
        tab = self.open(1280)
        pressed = "document.querySelector('.play.on').ariaPressed"
        tab.value("document.querySelector('.play.on').focus()")
        for kind in ("keyDown", "keyUp"):
            tab.call("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", text="\r",
                     windowsVirtualKeyCode=13)
        self.assertEqual(tab.value(pressed), "true")
        self.wait("sound", lambda: "bar" in self.state(tab))
        tab.click(".music .transport .play")
        self.assertEqual(tab.value(pressed), "false")
        tab.click(".play.on")
        self.assertEqual(tab.value("document.querySelector('.music .transport .play').textContent"),
                         "▶ Play")

    def test_memory_stays_as_it_is(self):
        tab = self.open(1280)
        tempo = "(() => { const n = document.querySelector(\"[aria-label='Tempo, percent']\");" \
                "n.value = 200; n.dispatchEvent(new Event('input')); })()"
        tab.click(".play.on")
        self.wait("sound", lambda: "bar" in self.state(tab))
        tab.value(tempo)

        def heap():
            tab.call("HeapProfiler.collectGarbage")
            return tab.call("Runtime.getHeapUsage")["usedSize"]

        time.sleep(4)
        early, tiles = heap(), "document.querySelectorAll('.live-sheet canvas').length"
        self.assertLessEqual(tab.value(tiles), 10)
        time.sleep(10)
        self.assertLess(heap() - early, 1e6, "the page keeps what has sounded")
        self.assertLessEqual(tab.value(tiles), 10)
        tab.click(".play.on")
        heard = tab.value(f"({LISTEN})({{temperature: 1, topP: 1, seed: 5}}, 2000)")
        self.assertGreater(len(heard["tokens"]), 3000)
        self.assertEqual(len(set(heard["bytes"][1:])), 1, "the module's memory grows")

    def test_draws_what_the_library_draws(self):
        for sampling, flags in (
                ({"temperature": 0, "topP": 1, "seed": 1}, ["--temperature", 0]),
                ({"temperature": 0.9, "topP": 0.9, "seed": 3},
                 ["--temperature", 0.9, "--top-p", 0.9, "--seed", 3])):
            native = json.loads(lagwise(
                "generate", FOLDER / "small.lagwise", "--prompt",
                self.run_folder / "samples/test-0-seed0-p0.95-1.mid", "--prompt-tokens", PROMPT,
                "--length", 200, "--json", *flags))["samples"][0]
            tab = self.open(1280)
            given = tab.value("lagwise.data.sections.flatMap((s) => s.blocks)"
                              ".find((b) => b.kind === 'music').pieces[0].rolls[0].tokens")
            self.assertEqual(given, native["prompt_tokens"])
            heard = tab.value(f"({LISTEN})({json.dumps(sampling)}, 400)")
            self.assertEqual(len(native["tokens"]), 200)
            self.assertEqual(heard["tokens"][:200], native["tokens"])

    def test_no_second_is_silent(self):
        tab = self.open(1280)
        loudness = tab.value(f"""(async () => {{
          const heard = await ({LISTEN})({{temperature: 1, topP: 0.95, seed: 2}}, 64);
          const roll = lagwise.data.sections.flatMap((s) => s.blocks)
            .find((b) => b.kind === 'music').pieces[0].rolls[0];
          const tracks = roll.tracks.map((track) => ({{...track, notes: heard.notes
            .filter(([number]) => heard.tracks[number] === track.name)
            .map((note) => note.slice(1))}}));
          const buffer = await lagwise.render({{...roll, tracks}}, 20);
          const samples = buffer.getChannelData(0);
          return Array.from({{length: 20}}, (_, i) => Math.sqrt(
            samples.slice(i * buffer.sampleRate, (i + 1) * buffer.sampleRate)
              .reduce((sum, x) => sum + x * x, 0) / buffer.sampleRate));
        }})()""")
        for second, loud in enumerate(loudness):
            self.assertGreater(loud, 0.003, f"second {second} is silent")

    def test_says_why_it_cannot_play(self):
        tab = self.open(1280)
        tab.value("lagwise.data.playOn.model = lagwise.data.playOn.model.slice(0, 4000)")
        tab.click(".play.on")
        self.wait("answer", lambda: "cannot play" in self.state(tab))
        self.assertIn("expected", self.state(tab))

    def test_says_what_it_needs_where_the_module_is_missing(self):
        page = FOLDER / "no-module.html"
        self.report(FOLDER / "nowhere.wasm", page)
        tab = self.browser.open(page.as_uri(), 390)
        self.assertEqual(tab.value("document.querySelectorAll('.play.on').length"), 0)
        self.assertIn("libc++-14-dev-wasm32",
                      tab.value("document.querySelector('.take .note').textContent"))
        self.assertEqual(tab.complaints(), [])


if __name__ == "__main__":
    PROGRAM, FOLDER, MODULE = sys.argv[1], Path(sys.argv[2]).resolve(), Path(sys.argv[3])
    if not chromium.available() or not MODULE.exists():
        print("play_on_test: no chromium, or no lagwise.wasm, so Play on was NOT tested "
              "(make wasm builds it)")
        sys.exit(1 if os.environ.get("CI") == "true" else SKIPPED)
    FOLDER.mkdir(parents=True, exist_ok=True)
    unittest.main(argv=sys.argv[:1], verbosity=2)
