#!/usr/bin/python3
"""`lagwise report` in a real browser: what the page shows, at the width of a phone and of a desk.

    page_test.py PROGRAM FOLDER      screenshots are kept in FOLDER

Exit code 77: there is no browser, so nothing was tested; with CI=true that is a failure."""

import csv
import fcntl
import json
import os
import subprocess
import sys
import time
import unittest
from pathlib import Path

import chromium
import made_runs

SKIPPED = 77
PROGRAM, FOLDER = "", Path()


def report(*words):
    done = subprocess.run([PROGRAM, "report", *map(str, words)], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stderr


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.runs, cls.page = FOLDER / "runs", FOLDER / "report.html"
        made_runs.make(cls.runs)
        with open(cls.runs / "lrpe/lock", "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # as one who trains there
            report(cls.runs, "--out", cls.page)
        cls.browser = chromium.Chromium()
        cls.addClassCleanup(cls.browser.__exit__)

    def open(self, width, dark=False):
        tab = self.browser.open(self.page.as_uri(), width, dark=dark)
        self.addCleanup(lambda: self.assertEqual(tab.complaints(), []))
        return tab

    def texts(self, tab, selector):
        return tab.value(f"[...document.querySelectorAll({json.dumps(selector)})]"
                         ".map(n => n.textContent)")

    def test_shows_every_section_at_every_width(self):
        for width in (320, 360, 1280):
            for dark in (False, True):
                tab = self.open(width, dark)
                self.assertEqual(self.texts(tab, "h2"),
                                 ["Runs", "Beyond the training length", "Music", "Training",
                                  "Quality for cost", "What they wrote"])
                self.assertLessEqual(tab.value("document.documentElement.scrollWidth"), width)
                self.assertGreaterEqual(len(self.texts(tab, ".chart svg[tabindex]")), 4)
                tab.screenshot(FOLDER / f"report-{width}-{'dark' if dark else 'light'}.png")

    def test_table_has_the_figures_of_the_folders(self):
        tab = self.open(1280)
        heads = self.texts(tab, "thead th")
        rows = [dict(zip(heads, row)) for row in tab.value(
            "[...document.querySelectorAll('tbody tr')].map(r => [...r.cells].map("
            "c => c.textContent))")]
        self.assertEqual([row["run"] for row in rows], sorted(made_runs.ENCODINGS))
        found = json.loads((self.runs / "none/eval/position-test.json").read_text())
        late = [b["loss"] for b in found["buckets"] if b["begin"] >= 2 * made_runs.LENGTH]
        none = next(row for row in rows if row["run"] == "none")
        self.assertEqual(none["loss at 4×"], f"{sum(late) / len(late):.3f}")
        training = next(row for row in rows if row["run"] == "lrpe")
        self.assertEqual(training["state"], "training, step 610 of 1000")
        self.assertEqual(training["loss at 4×"], "–")
        self.assertEqual(training["nats per token (test)"], "–")
        self.assertNotEqual(training["nats per token (valid, in training)"], "–")
        self.assertEqual(none["peak memory"], "734.0 MB")  # a MB is a million

    def test_figures_can_be_read_on_a_phone(self):
        """Names as long as those of a comparison's cells leave room for two columns."""
        runs, page = FOLDER / "long-runs", FOLDER / "long.html"
        made_runs.make(runs, called="language-wikitext2~{}~linear+map=none,denominator=none")
        report(runs, "--out", page)
        tab = self.browser.open(page.as_uri(), 390)
        room = tab.value("""(() => {
          const box = document.querySelector('.table').getBoundingClientRect();
          return [...document.querySelectorAll('tbody tr')].map((row) => {
            const name = row.cells[0].getBoundingClientRect();
            return [name.right, ...[...row.cells].slice(1).map((c) => c.getBoundingClientRect())
              .filter((c) => c.left >= name.right - 1 && c.right <= box.right + 1)
              .map((c) => c.width)];
          });
        })()""")
        for name, *figures in room:
            self.assertLess(name, 0.45 * 390)
            self.assertGreaterEqual(len(figures), 2, "no room for figures")
        self.assertLessEqual(tab.value("document.documentElement.scrollWidth"), 390)
        tab.screenshot(FOLDER / "long-390.png", of=".card.wide")

    def test_headings_break_between_words_alone(self):
        tab = self.open(390)
        broken = tab.value("""[...document.querySelectorAll('thead button')].flatMap((button) => {
          const text = button.firstChild;
          return [...text.data.matchAll(/\\S+/g)].filter((word) => {
            const range = document.createRange();
            range.setStart(text, word.index);
            range.setEnd(text, word.index + word[0].length);
            return range.getClientRects().length > 1;
          }).map((word) => word[0]);
        })""")
        self.assertEqual(broken, [])

    def test_ticks_differ_from_each_other(self):
        tab = self.open(390)
        ticks = tab.value("""(() => {
          const texts = [];
          for (const [low, high, kind] of [[10, 12, 'count'], [0, 1, 'count'],
                                           [5.1, 5.9, 'count'], [0, 0.3, 'number'],
                                           [0, 3e6, 'bytes'], [0, 5e4, 'count']]) {
            const {values, step} = new lagwise.Scale(low, high, false).ticks(4, kind === 'count');
            texts.push(values.map((x) => lagwise.formatTick(x, kind, step)));
          }
          return texts;
        })()""")
        self.assertEqual(ticks[0], ["10", "11", "12"])
        self.assertEqual(ticks[1], ["0", "1"])
        for row in ticks:
            self.assertGreaterEqual(len(row), 2, row)
            self.assertEqual(len(set(row)), len(row), row)

    def test_sorts_by_the_column_clicked(self):
        tab = self.open(1280)
        tab.click("thead th:nth-child(2) button")
        self.assertEqual(tab.value("document.querySelector('thead th:nth-child(2)').ariaSort"),
                         "ascending")
        self.assertEqual(self.texts(tab, "tbody th")[0], "sine_spe")

    def test_reads_values_under_the_pointer_and_by_keys(self):
        tab = self.open(1280)
        tab.hover(".chart svg[tabindex]", 0.5)
        self.assertEqual(tab.value("document.querySelector('.tip').hidden"), False)
        self.assertIn("none", " ".join(self.texts(tab, ".tip .reading")))
        tab.value("document.querySelector('.chart svg[tabindex]').focus()")
        tab.key("Home")
        self.assertEqual(self.texts(tab, ".tip .where")[0], "position 32")
        tab.key("ArrowRight")
        self.assertEqual(self.texts(tab, ".tip .where")[0], "position 96")
        tab.key("Escape")
        self.assertEqual(tab.value("document.querySelector('.tip').hidden"), True)

    def test_hides_a_run_everywhere(self):
        tab = self.open(1280)
        curves = "document.querySelectorAll('.curve').length"
        before = tab.value(curves)
        tab.click(".legend .key")
        self.assertLess(tab.value(curves), before)
        self.assertEqual(len(self.texts(tab, "tr.off")), 1)
        pressed = tab.value("[...document.querySelectorAll('.key')].filter("
                            "k => k.textContent === 'decay').map(k => k.ariaPressed)")
        self.assertEqual(set(pressed), {"false"})
        tab.click(".legend .key")
        self.assertEqual(tab.value(curves), before)

    def test_draws_anew_at_another_width(self):
        tab = self.open(1280)
        width = "document.querySelector('.chart svg[tabindex]').clientWidth"
        before = tab.value(width)
        tab.call("Emulation.setDeviceMetricsOverride", width=400, height=800,
                 deviceScaleFactor=1, mobile=False)
        tab.settle()
        self.assertLess(tab.value(width), before)
        self.assertLessEqual(tab.value("document.documentElement.scrollWidth"), 400)

    def test_switches_tabs_and_theme(self):
        tab = self.open(360)
        tab.click("[role=tab]:nth-child(2)")
        self.assertIn("Loss against restarting the window", self.texts(tab, "h3"))
        paper = "getComputedStyle(document.body).backgroundColor"
        light = tab.value(paper)
        tab.click("#theme")
        self.assertNotEqual(tab.value(paper), light)
        tab.click("#theme")
        self.assertEqual(tab.value(paper), light)

    def test_saves_the_data_of_a_chart(self):
        tab = self.open(1280)
        folder = FOLDER / "saved"
        folder.mkdir(exist_ok=True)
        file = folder / "loss-by-position.csv"
        file.unlink(missing_ok=True)
        self.browser.call("Browser.setDownloadBehavior", behavior="allow",
                          downloadPath=str(folder))
        tab.click("[aria-label*='Loss by position']")
        for _ in range(100):
            if file.exists() and file.stat().st_size:
                break
            time.sleep(0.1)
        with open(file, newline="", encoding="utf-8") as saved:
            rows = list(csv.DictReader(saved))
        found = json.loads((self.runs / "none/eval/position-test.json").read_text())
        self.assertEqual(len(rows), len(found["buckets"]))
        for row, bucket in zip(rows, found["buckets"]):
            self.assertAlmostEqual(float(row["none"]), bucket["loss"], delta=1e-5)

    def test_draws_and_plays_music(self):
        for width in (360, 1280):
            tab = self.open(width)
            self.assertEqual(len(self.texts(tab, ".music .roll")), 4)
            self.assertEqual(self.texts(tab, ".music .legend .key"), ["bass", "chords", "drums"])
            inked = tab.value("(() => { const c = document.querySelector('.roll canvas');"
                              "const d = c.getContext('2d').getImageData(0, 0, c.width, c.height)"
                              ".data; let n = 0; for (let i = 3; i < d.length; i += 4) n += d[i] > 0;"
                              "return n / (c.width * c.height); })()")
            self.assertGreater(inked, 0.02)
            tab.click(".music .play")
            cursor = "document.querySelector('.cursor').style.transform"
            first = tab.value(cursor)
            time.sleep(1)
            self.assertNotEqual(tab.value(cursor), first, "the cursor stands still")
            tab.screenshot(FOLDER / f"music-{width}.png", of=".music")
            tab.click(".music .play")
            self.assertEqual(self.texts(tab, ".music .play")[0], "▶ Play")
            stopped = tab.value(cursor)
            time.sleep(0.3)
            self.assertEqual(tab.value(cursor), stopped)

    def test_seeks_changes_tempo_and_mutes(self):
        tab = self.open(1280)
        change = ("(() => { const n = document.querySelector(%s); n.value = %s;"
                  "n.dispatchEvent(new Event('input')); })()")
        tab.value(change % (json.dumps("[aria-label='Place in the piece']"), 96))
        shown = self.texts(tab, ".music .time")
        self.assertEqual(shown, ["0:55 / 1:50", "104 bpm"])
        tab.value(change % (json.dumps("[aria-label='Tempo, percent']"), 200))
        self.assertEqual(self.texts(tab, ".music .time"), ["0:27 / 0:55", "208 bpm"])
        tab.click(".music .legend .key")
        self.assertEqual(tab.value("document.querySelector('.music .legend .key').ariaPressed"),
                         "false")

    def test_the_sound_is_not_silence(self):
        tab = self.open(1280)
        loudness = """(async () => {
          const music = lagwise.data.sections.flatMap((s) => s.blocks)
            .find((b) => b.kind === 'music');
          const roll = music.pieces[0].rolls[0];
          const found = [];
          for (const tracks of [...roll.tracks.map((t) => [t]), roll.tracks, []]) {
            const buffer = await lagwise.render({...roll, tracks}, 4);
            const samples = buffer.getChannelData(0);
            const power = samples.reduce((sum, x) => sum + x * x, 0) / samples.length;
            const peak = samples.reduce((most, x) => Math.max(most, Math.abs(x)), 0);
            found.push([Math.sqrt(power), peak]);
          }
          return found;
        })()"""
        found = tab.value(loudness)
        for loud, peak in found[:-1]:  # each track, then all of them
            self.assertGreater(loud, 0.005)
            self.assertLess(peak, 1)
        self.assertEqual(found[-1], [0, 0])  # nothing played, nothing heard

    def test_every_letter_stands_out(self):
        """Contrast of text against its card, 4.5 : 1 (WCAG AA), in both themes."""
        tab = self.open(1280)
        ratios = """(() => {
          const light = (c) => c.match(/[0-9.]+/g).slice(0, 3).map((v) => v / 255)
            .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
            .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
          const probe = document.querySelector('.card').appendChild(document.createElement('i'));
          const card = light(getComputedStyle(probe.parentNode).backgroundColor);
          return ['ink', 'soft', 'accent', ...[0, 1, 2, 3, 4, 5, 6, 7].map((i) => 'c' + i)]
            .map((name) => {
              probe.style.color = `var(--${name})`;
              const own = light(getComputedStyle(probe).color);
              return [name, (Math.max(own, card) + 0.05) / (Math.min(own, card) + 0.05)];
            });
        })()"""
        for _ in range(2):
            for name, ratio in tab.value(ratios):
                self.assertGreaterEqual(ratio, 4.5, name)
            tab.click("#theme")


if __name__ == "__main__":
    if not chromium.available():
        print("page_test: no chromium here, so the page was NOT tested "
              "(Debian: apt install chromium)")
        sys.exit(1 if os.environ.get("CI") == "true" else SKIPPED)
    PROGRAM, FOLDER = sys.argv[1], Path(sys.argv[2]).resolve()
    FOLDER.mkdir(parents=True, exist_ok=True)
    unittest.main(argv=sys.argv[:1], verbosity=2)
