// A chart: curves over an axis, drawn at the width there is, so that its letters keep
// their size on any screen.

const keyOf = (series) => series.of || series.label;

class Chart {
  /** `who`: the Identities its curves belong to. */
  constructor(spec, who) {
    Object.assign(this, {spec, who});
    this.keys = [...new Set(spec.series.map(keyOf))];
    this.plot = el('div', {class: 'plot'});
    this.node = el('div', {class: 'chart'},
                   this.keys.length > 1 ? who.legend(this.keys) : null, this.plot);
    this.hover = new Hover(this);
    onWidth(this.plot, (width) => this.draw(width));
    who.watch(() => this.width && this.draw(this.width));
  }

  visible() {
    return this.spec.series.filter((series) => this.who.shows(keyOf(series)));
  }

  fitted() {
    const shown = this.visible().length ? this.visible() : this.spec.series;
    const {across, up, mark, clip} = this.spec;
    const x = scaleOf(shown.flatMap((s) => s.x).concat(mark > 0 ? [mark] : []), across.log);
    // A loss falls steeply at first: `clip` frames what comes after that.
    const settled = x.low + (clip ? 0.05 : 0) * (x.high - x.low);
    const heights = shown.flatMap((s) => [s.y, s.low || [], s.high || []].flatMap(
      (numbers) => numbers.filter((_, i) => s.x[i] >= settled || s.x.length < 20)));
    return {x, y: scaleOf(heights, up.log).widened(5)};
  }

  /** Places of the plot in the picture. */
  frame(width, scales) {
    const height = Math.round(Math.min(360, Math.max(230, width * 0.52)));
    const yTicks = scales.y.ticks(5, this.spec.up.format === 'count');
    const written = yTicks.values.map((t) => formatTick(t, this.spec.up.format, yTicks.step));
    const left = 14 + 7 * Math.max(...written.map((text) => text.length), 1);
    const named = width >= 470 && this.keys.length > 1;
    const longest = Math.max(...this.keys.map((key) => key.length));
    const right = named ? Math.min(190, 20 + 7 * longest) : 14;
    const top = this.spec.markLabel && this.spec.mark > 0 ? 44 : 28;
    return {width, height, left, top, named, yTicks, written, right: width - right,
            bottom: height - 42};
  }

  draw(width) {
    this.width = width;
    const scales = this.fitted();
    const f = this.frame(width, scales);
    this.x = (value) => f.left + scales.x.share(value) * (f.right - f.left);
    this.y = (value) => f.bottom - scales.y.share(value) * (f.bottom - f.top);
    Object.assign(this, {f, scales});
    const clip = `clip${Chart.count = (Chart.count || 0) + 1}`;
    const inside = svg('g', {'clip-path': `url(#${clip})`});
    this.picture = svg('svg', {
      width, height: f.height, viewBox: `0 0 ${width} ${f.height}`, tabindex: 0,
      role: 'img', 'aria-label': this.summary(),
    }, svg('clipPath', {id: clip}, svg('rect', {
      x: f.left - 6, y: f.top - 6, width: f.right - f.left + 12,
      height: f.bottom - f.top + 12})), this.grid(), this.markLine(), inside);
    for (const series of this.visible()) inside.append(...this.curve(series));
    if (f.named) this.picture.append(...this.names());
    this.plot.replaceChildren(this.picture);
    this.hover.attach();
  }

  grid() {
    const {f, scales, spec} = this;
    const xTicks = scales.x.ticks(Math.max(3, Math.floor((f.right - f.left) / 80)),
                                  spec.across.format === 'count');
    const group = svg('g', {class: 'grid'});
    f.yTicks.values.forEach((tick, i) => group.append(
      svg('line', {x1: f.left, x2: f.right, y1: this.y(tick), y2: this.y(tick),
                   class: tick === 0 && scales.y.low < 0 ? 'zero' : null}),
      svg('text', {x: f.left - 8, y: this.y(tick) + 4, 'text-anchor': 'end'}, f.written[i])));
    for (const tick of xTicks.values) {
      const text = formatTick(tick, spec.across.format, xTicks.step);
      const room = f.width - 2 - 3.4 * text.length;
      group.append(
        svg('line', {x1: this.x(tick), x2: this.x(tick), y1: f.bottom, y2: f.bottom + 5}),
        svg('text', {x: Math.min(this.x(tick), room), y: f.bottom + 18,
                     'text-anchor': 'middle'}, text));
    }
    group.append(
      svg('line', {x1: f.left, x2: f.right, y1: f.bottom, y2: f.bottom, class: 'axis'}),
      svg('text', {x: 2, y: 13, class: 'label'}, spec.up.label),
      svg('text', {x: f.right, y: f.height - 6, 'text-anchor': 'end', class: 'label'},
          spec.across.label + (spec.across.log ? ' (log scale)' : '')));
    return group;
  }

  /** The training length, and a tint over all that lies beyond it. */
  markLine() {
    const {f, spec} = this;
    if (!(spec.mark > 0)) return null;
    const x = this.x(spec.mark);
    if (!(x >= f.left - 1 && x <= f.right + 1)) return null;
    const late = x > (f.left + f.right) / 2;
    return svg('g', {class: 'mark'},
               svg('rect', {x, y: f.top, width: Math.max(0, f.right - x),
                            height: f.bottom - f.top}),
               svg('line', {x1: x, x2: x, y1: f.top - 6, y2: f.bottom}),
               svg('text', {x: x + (late ? 4 : -4), y: f.top - 11,
                            'text-anchor': late ? 'end' : 'start'}, spec.markLabel || ''));
  }

  /** Unbroken pieces of a curve, as lists of [x, y] in the picture. */
  pieces(xs, ys) {
    const pieces = [[]];
    xs.forEach((x, i) => {
      if (this.scales.x.holds(x) && this.scales.y.holds(ys[i]) && ys[i] !== null)
        pieces.at(-1).push([this.x(x), this.y(ys[i])]);
      else if (pieces.at(-1).length) pieces.push([]);
    });
    return pieces.filter((piece) => piece.length);
  }

  curve(series) {
    const colour = this.who.colour(keyOf(series));
    const path = (points) => points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join('L');
    const parts = [];
    if (series.low) {
      const low = this.pieces(series.x, series.low);
      this.pieces(series.x, series.high).forEach((piece, i) => low[i] && parts.push(
        svg('path', {class: 'band', fill: colour,
                     d: `M${path(piece)}L${path([...low[i]].reverse())}Z`})));
    }
    for (const piece of this.pieces(series.x, series.y)) {
      parts.push(svg('path', {class: series.dashed ? 'curve dashed' : 'curve',
                              stroke: colour, d: `M${path(piece)}`}));
      if (series.dashed) continue;
      parts.push(...this.marks(piece, keyOf(series)));
    }
    return parts;
  }

  /** Along a curve, with room between them. */
  marks(points, name) {
    const spread = [];
    for (const [x, y] of points)
      if (!spread.length || x - spread.at(-1)[0] >= 26) spread.push([x, y]);
    return spread.map(([x, y]) => svg('path', {
      class: 'point', d: this.who.mark(name), fill: this.who.colour(name),
      transform: `translate(${x.toFixed(1)},${y.toFixed(1)}) scale(0.8)`}));
  }

  /** Names at the ends of the curves, pushed apart where they would overlap. */
  names() {
    const {f} = this;
    const ends = [];
    const early = [];  // a run that is behind: its name stands above the end
    for (const series of this.visible()) {
      const last = this.pieces(series.x, series.y).at(-1)?.at(-1);
      if (!last || (series.dashed && series.of)) continue;
      const end = {name: keyOf(series), x: last[0], y: last[1]};
      (end.x < f.right - 40 ? early : ends).push(end);
    }
    ends.sort((a, b) => a.y - b.y);
    ends.forEach((end, i) => {
      end.at = Math.max(end.y, i ? ends[i - 1].at + 15 : f.top);
    });
    let floor = f.bottom;
    for (const end of [...ends].reverse()) {
      end.at = Math.min(end.at, floor);
      floor = end.at - 15;
    }
    const text = (name, x, y) => svg('text', {x, y, fill: this.who.colour(name)},
                                     name.length > 25 ? `${name.slice(0, 24)}…` : name);
    return [...ends.map(({name, x, y, at}) => svg('g', {class: 'name'},
      svg('path', {d: `M${x + 6},${y}L${f.right + 8},${at}`, stroke: this.who.colour(name)}),
      text(name, f.right + 11, at + 4))),
            ...early.map(({name, x, y}) => svg('g', {class: 'name'}, text(name, x - 4, y - 9)))];
  }

  /** In words, for those who do not see it. */
  summary() {
    const {spec} = this;
    const ends = spec.series.map((s) => {
      const values = s.y.filter((y) => y !== null);
      return `${s.label}: from ${format(values[0], spec.up.format)} to ${
        format(values.at(-1), spec.up.format)}`;
    });
    return `${spec.title}. ${spec.up.label} over ${spec.across.label}. ${
      ends.join('; ')}. Arrow keys read values.`;
  }

  /** One row per x, one column per curve, and those of its band. */
  rows() {
    const {spec} = this;
    const columns = spec.series.flatMap((s) => [[s.label, s.x, s.y],
      ...(s.low ? [[`${s.label} (low)`, s.x, s.low], [`${s.label} (high)`, s.x, s.high]] : [])]);
    const xs = [...new Set(spec.series.flatMap((s) => s.x))].sort((a, b) => a - b);
    const tables = columns.map(([, x, y]) => new Map(x.map((at, i) => [at, y[i]])));
    return [[spec.across.label, ...columns.map(([label]) => label)],
            ...xs.map((x) => [x, ...tables.map((table) => table.get(x) ?? null)])];
  }
}
