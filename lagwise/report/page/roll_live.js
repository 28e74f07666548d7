// A piano roll that grows at one end and is forgotten at the other. It stands on tiles, each
// a canvas of a few bars: a note is drawn once, on the tiles it touches, and a tile that has
// gone out of sight is thrown away.

const LIVE_PER_BEAT = 13;  // pixels
const TILE = 16;           // beats
const STANDS = 0.4;        // where the cursor comes to stand, as a share of the width

class LiveRoll {
  /** `tracks`: as in RollView; `notes()`: those to draw where a tile is drawn anew. */
  constructor({layout, bar, prompt, tracks, hidden, notes}) {
    Object.assign(this, {bar, prompt, tracks, hidden, notes, tiles: new Map(), left: 0});
    this.layout = {...layout, drums: [...layout.drums]};
    this.cursor = el('div', {class: 'cursor', hidden: true});
    this.sheet = el('div', {class: 'live-sheet'}, this.cursor);
    this.node = el('div', {class: 'roll live', role: 'img',
                           'aria-label': 'Piano roll of what is being played'}, this.sheet);
    onWidth(this.node, (width) => {
      this.width = width;
      this.redraw();
    });
    this.fit();
  }

  /** Room for what is played: pitches and drums that no roll had yet. */
  admit({track, note: [, , pitch]}) {
    const {layout} = this;
    if (track.drums) {
      if (layout.drums.includes(pitch)) return false;
      layout.drums = [...layout.drums, pitch].sort((a, b) => a - b);
    } else {
      if (pitch > layout.low && pitch < layout.high) return false;
      layout.low = Math.min(layout.low, pitch - 2);
      layout.high = Math.max(layout.high, pitch + 2);
    }
    return true;
  }

  fit() {
    const {layout} = this;
    layout.height = heightOf(layout);
    this.sheet.style.height = `${layout.height}px`;
    this.colours = Object.fromEntries(['ink', 'soft', 'line'].map(
      (name) => [name, resolved(`var(--${name})`)]));
    this.inks = new Map(this.tracks.map(
      ({name}) => [name, resolved(trackColour(this.tracks, name))]));
  }

  /** Draws notes that have just come. */
  add(notes) {
    if (notes.filter((one) => this.admit(one)).length) {
      this.redraw();
      return;
    }
    for (const one of notes)
      for (const tile of this.tilesOf(one.note)) this.drawNote(tile, one);
  }

  *tilesOf([start, end]) {
    for (let i = Math.floor(start / TILE); i * TILE < Math.max(end, start + 0.2); ++i)
      if (this.tiles.has(i)) yield this.tiles.get(i);
  }

  redraw() {
    for (const {canvas} of this.tiles.values()) canvas.remove();
    this.tiles.clear();
    this.fit();
    this.cover();
  }

  /** As many tiles as are to be seen, and one more on either side. */
  cover() {
    if (!this.width) return;
    const first = Math.floor(this.left / LIVE_PER_BEAT / TILE) - 1;
    const last = Math.floor((this.left + this.width) / LIVE_PER_BEAT / TILE) + 1;
    for (const [i, {canvas}] of this.tiles) if (i < first || i > last) {
      canvas.remove();
      this.tiles.delete(i);
    }
    for (let i = Math.max(0, first); i <= last; ++i) if (!this.tiles.has(i)) this.addTile(i);
  }

  addTile(i) {
    const {layout} = this;
    const dense = Math.min(devicePixelRatio || 1, 2);
    const across = TILE * LIVE_PER_BEAT;
    const canvas = el('canvas', {width: across * dense, height: layout.height * dense});
    canvas.style.cssText = `left: ${i * across}px; width: ${across}px; height: ${layout.height}px`;
    const pen = canvas.getContext('2d');
    pen.setTransform(dense, 0, 0, dense, -i * across * dense, 0);
    const tile = {canvas, pen, from: i * TILE, to: (i + 1) * TILE};
    this.tiles.set(i, tile);
    this.drawGround(tile);
    for (const one of this.notes())
      if (one.note[0] < tile.to && one.note[1] >= tile.from - 0.2) this.drawNote(tile, one);
    this.sheet.prepend(canvas);
  }

  drawGround({pen, from, to}) {
    const {layout, colours, bar, prompt} = this;
    const x = (beat) => beat * LIVE_PER_BEAT;
    pen.fillStyle = colours.line;
    if (prompt > from) {
      pen.globalAlpha = 0.6;
      pen.fillRect(x(from), HEAD, x(Math.min(prompt, to) - from), layout.height - HEAD);
      pen.globalAlpha = 1;
    }
    for (let c = Math.ceil(layout.low / 12) * 12; c < layout.high; c += 12)
      pen.fillRect(x(from), pitchTop(layout, c) + ROW, x(TILE), 1);
    pen.font = '11px system-ui, sans-serif';
    for (let number = Math.ceil(from / bar); number * bar < to; ++number) {
      pen.fillStyle = colours.line;
      pen.fillRect(Math.round(x(number * bar)), HEAD, 1, layout.height - HEAD);
      const room = (number * bar - prompt) * LIVE_PER_BEAT;  // from the words "playing on"
      if (prompt > 0 && room > -20 && room < 72) continue;
      pen.fillStyle = colours.soft;
      pen.fillText(String(number + 1), x(number * bar) + 3, 13);
    }
    pen.fillStyle = colours.ink;
    if (prompt <= 0 || prompt + 8 < from || prompt > to) return;
    pen.fillRect(Math.round(x(prompt)), 3, 1, layout.height - 3);
    pen.fillText('playing on', x(prompt) + 4, 13);
  }

  drawNote({pen}, {track, note}) {
    if (this.hidden(track)) return;
    pen.fillStyle = this.inks.get(track.name);
    pen.globalAlpha = note[0] < this.prompt - 1e-6 ? 0.5 : 1;
    fillNote(pen, this.layout, LIVE_PER_BEAT, track, note);
    pen.globalAlpha = 1;
  }

  /** Puts the cursor at a beat and lets the sheet slide below it. */
  point(beat) {
    if (!this.width) return;
    const x = beat * LIVE_PER_BEAT;
    this.left = Math.max(this.left, x - STANDS * this.width);
    if (matchMedia('(prefers-reduced-motion: reduce)').matches)  // from page to page
      this.left = Math.floor(x / this.width) * this.width;
    this.sheet.style.transform = `translateX(${-this.left}px)`;
    this.cursor.hidden = false;
    this.cursor.style.transform = `translateX(${x}px)`;
    this.cover();
  }
}
