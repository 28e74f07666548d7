// Values under the pointer, the finger or the arrow keys.

class Hover {
  constructor(chart) {
    this.chart = chart;
    this.tip = el('div', {class: 'tip', role: 'status', hidden: true});
    this.at = null;  // the x whose values are shown
  }

  /** To a picture just drawn. */
  attach() {
    const {picture, plot} = this.chart;
    this.guide = svg('g', {class: 'guide'});
    picture.append(this.guide);
    plot.append(this.tip);
    picture.addEventListener('pointermove', (event) => this.point(event));
    picture.addEventListener('pointerdown', (event) => this.point(event));
    picture.addEventListener('pointerleave', (event) =>
      event.pointerType === 'mouse' && this.hide());
    picture.addEventListener('keydown', (event) => this.key(event));
    picture.addEventListener('blur', () => this.hide());
    this.hide();
  }

  /** Every x a visible curve has, rising. */
  stops() {
    const xs = new Set(this.chart.visible().flatMap(
      (s) => s.x.filter((x, i) => s.y[i] !== null && this.chart.scales.x.holds(x))));
    return [...xs].sort((a, b) => a - b);
  }

  point(event) {
    const {left} = this.chart.picture.getBoundingClientRect();
    const x = event.clientX - left;
    let best = null;
    for (const stop of this.stops()) {
      const distance = Math.abs(this.chart.x(stop) - x);
      if (best === null || distance < best.distance) best = {stop, distance};
    }
    if (best) this.show(best.stop);
  }

  key(event) {
    const step = {ArrowLeft: -1, ArrowRight: 1, Home: -1e9, End: 1e9}[event.key];
    if (event.key === 'Escape') this.hide();
    if (!step) return;
    event.preventDefault();
    const stops = this.stops();
    const now = this.at === null ? (step > 0 ? -1 : stops.length) : stops.indexOf(this.at);
    const next = stops[Math.min(stops.length - 1, Math.max(0, now + step))];
    if (next !== undefined) this.show(next);
  }

  /** Of each visible curve, its point nearest to x, if that is near. */
  readings(x) {
    const {chart} = this;
    const found = [];
    for (const series of chart.visible()) {
      let best = null;
      series.x.forEach((other, i) => {
        const distance = Math.abs(chart.x(other) - chart.x(x));
        if (chart.scales.y.holds(series.y[i]) && series.y[i] !== null && distance <= 12 &&
            (best === null || distance < best.distance)) best = {i, distance};
      });
      if (best) found.push({series, i: best.i, y: series.y[best.i]});
    }
    return found.sort((a, b) => b.y - a.y);
  }

  show(x) {
    const {chart} = this;
    const {f, spec} = chart;
    this.at = x;
    const readings = this.readings(x);
    const across = chart.x(x);
    this.guide.replaceChildren(
      svg('line', {x1: across, x2: across, y1: f.top, y2: f.bottom}),
      ...readings.map(({series, i, y}) => svg('circle', {
        cx: chart.x(series.x[i]), cy: chart.y(y), r: 4.5,
        stroke: chart.who.colour(keyOf(series))})));
    const where = `${spec.across.label} ${format(x, spec.across.format)}`;
    this.tip.replaceChildren(el('div', {class: 'where'}, where), ...readings.map((reading) =>
      this.line(reading)));
    this.tip.hidden = false;
    const room = f.width - this.tip.offsetWidth;
    const beside = across + 14 <= room ? across + 14 : across - 14 - this.tip.offsetWidth;
    this.tip.style.left = `${Math.max(0, Math.min(room, beside))}px`;
    this.tip.style.top = `${f.top}px`;
  }

  line({series, i, y}) {
    const {who, spec} = this.chart;
    const half = series.high ? series.high[i] - y : 0;
    return el('div', {class: 'reading'}, who.swatch(keyOf(series)),
              el('span', {}, series.label), el('b', {}, format(y, spec.up.format)),
              half > 0 ? el('i', {}, `± ${format(half, spec.up.format)}`) : null);
  }

  hide() {
    this.at = null;
    this.tip.hidden = true;
    this.guide?.replaceChildren();
  }
}
