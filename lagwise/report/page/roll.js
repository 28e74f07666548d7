// A piano roll: time across, pitch up, drums in lanes of their own below.

const ROW = 3.5;      // pixels of a pitch
const LANE = 6;       // of a drum
const HEAD = 20;      // the line of bar numbers and labels
const PER_BEAT = 5;   // at least; a longer piece scrolls

/** The colour of a track: not those the first runs have, and grey for drums. */
function trackColour(tracks, name) {
  const index = tracks.findIndex((track) => track.name === name);
  if (tracks[index].drums) return 'var(--c7)';
  return `var(--c${[6, 5, 4, 3, 2, 1, 0][index % 7]})`;
}

/** What rolls of one piece share, so that they can be compared: pitches, drums, length. */
function layoutOf(rolls) {
  const notes = rolls.flatMap((roll) => notesOf(roll));
  const pitches = notes.filter(({track}) => !track.drums).map(({note}) => note[2]);
  const drums = [...new Set(notes.filter(({track}) => track.drums).map(({note}) => note[2]))];
  const low = pitches.length ? Math.min(...pitches) - 2 : 60;
  const high = pitches.length ? Math.max(...pitches) + 2 : 60;
  const layout = {low, high, drums: drums.sort((a, b) => a - b),
                  beats: Math.max(...rolls.map((roll) => roll.beats), 1)};
  return {...layout, height: heightOf(layout)};
}

function heightOf({low, high, drums}) {
  return HEAD + ROW * (high - low) + (drums.length ? 8 + LANE * drums.length : 0) + 4;
}

function pitchTop(layout, pitch) {
  return HEAD + (layout.high - pitch) * ROW;
}

function drumTop({drums, height}, pitch) {
  return height - 4 - LANE * (drums.indexOf(pitch) + 1);
}

/** A note [start, end, pitch] in the colour of the pen. */
function fillNote(pen, layout, perBeat, track, [start, end, pitch]) {
  const x = start * perBeat;
  if (track.drums)
    pen.fillRect(x, drumTop(layout, pitch), Math.max(1.6, 0.2 * perBeat), LANE - 1);
  else
    pen.fillRect(x, pitchTop(layout, pitch), Math.max(1.5, (end - start) * perBeat - 0.6),
                 ROW - 0.5);
}

class RollView {
  /** `tracks`: those of all rolls, a name once; `hidden(track)`; `seek(beat)`. */
  constructor(roll, layout, tracks, hidden, seek) {
    Object.assign(this, {roll, layout, tracks, hidden});
    this.canvas = el('canvas', {role: 'img', 'aria-label': this.summary(),
                                onclick: (event) => seek(this.beatAt(event))});
    this.cursor = el('div', {class: 'cursor'});
    this.scroller = el('div', {class: 'roll', tabindex: 0, role: 'group',
                               'aria-label': `Piano roll of ${roll.run}`},
                       el('div', {class: 'sheet'}, this.canvas, this.cursor));
    onWidth(this.scroller, (width) => this.draw(width));
  }

  beatAt(event) {
    return (event.clientX - this.canvas.getBoundingClientRect().left) / this.perBeat;
  }

  summary() {
    const {roll} = this;
    const counts = roll.tracks.map((track) => `${track.notes.length} notes of ${track.name}`);
    return `${roll.run}: ${format(roll.beats / roll.bar)} bars; ${counts.join(', ')}.` +
      (roll.prompt ? ` The first ${format(roll.prompt / roll.bar)} bars are the prompt.` : '');
  }

  draw(width = this.width) {
    if (!width) return;
    this.width = width;
    const {layout, canvas} = this;
    this.perBeat = Math.max(PER_BEAT, width / layout.beats);
    const across = Math.ceil(layout.beats * this.perBeat);
    const dense = Math.min(devicePixelRatio || 1, 16000 / across);
    canvas.width = across * dense;
    canvas.height = layout.height * dense;
    canvas.style.width = `${across}px`;
    canvas.style.height = `${layout.height}px`;
    const pen = canvas.getContext('2d');
    pen.setTransform(dense, 0, 0, dense, 0, 0);
    this.colours = Object.fromEntries(['ink', 'soft', 'line', 'tint', 'card', 'paper'].map(
      (name) => [name, resolved(`var(--${name})`)]));
    this.ground(pen, across);
    for (const track of this.roll.tracks) if (!this.hidden(track)) this.notes(pen, track);
    this.signs(pen);
  }

  /** Bars, octaves, and a shade over the prompt. */
  ground(pen, across) {
    const {layout, roll, colours, perBeat} = this;
    if (roll.prompt > 0) {
      pen.fillStyle = colours.line;
      pen.globalAlpha = 0.6;
      pen.fillRect(0, HEAD, roll.prompt * perBeat, layout.height - HEAD);
      pen.globalAlpha = 1;
    }
    pen.fillStyle = colours.line;
    const every = [1, 2, 4, 8, 16, 32].find((bars) => bars * roll.bar * perBeat >= 44) || 64;
    for (let bar = 0; bar * roll.bar < layout.beats; bar += every)
      pen.fillRect(Math.round(bar * roll.bar * perBeat), HEAD, 1, layout.height - HEAD);
    for (let c = Math.ceil(layout.low / 12) * 12; c < layout.high; c += 12)
      pen.fillRect(0, pitchTop(layout, c) + ROW, across, 1);
    this.every = every;
  }

  /** Those of the prompt are pale. */
  notes(pen, track) {
    const {perBeat, roll, layout} = this;
    pen.fillStyle = resolved(trackColour(this.tracks, track.name));
    for (const note of track.notes) {
      pen.globalAlpha = note[0] < roll.prompt - 1e-6 ? 0.5 : 1;
      fillNote(pen, layout, perBeat, track, note);
    }
    pen.globalAlpha = 1;
  }

  /** Numbers of bars, where the prompt ends and where the training length does. */
  signs(pen) {
    const {colours, perBeat, roll, layout} = this;
    pen.font = '11px system-ui, sans-serif';
    const taken = [];
    const sign = (beat, text, colour, dashes) => {
      const x = beat * perBeat;
      if (dashes) {
        pen.strokeStyle = colour;
        pen.setLineDash(dashes);
        pen.beginPath();
        pen.moveTo(x, 3);
        pen.lineTo(x, layout.height);
        pen.stroke();
        pen.setLineDash([]);
      }
      const width = pen.measureText(text).width;
      if (taken.some(([a, b]) => x < b + 6 && x + width > a - 10)) return;
      taken.push([x, x + width]);
      pen.fillStyle = colour;
      pen.fillText(text, x + 3, 13);
    };
    if (roll.trained > 0 && roll.trained < layout.beats)
      sign(roll.trained, 'training length', colours.ink, [4, 3]);
    if (roll.prompt > 0) {
      sign(roll.prompt, 'continuation', colours.ink, [1, 0]);
      sign(0, 'prompt', colours.ink);
    }
    for (let bar = 0; bar * roll.bar < layout.beats; bar += this.every)
      sign(bar * roll.bar, String(bar + 1), colours.soft);
  }

  /** The line that moves with the sound; null: none. */
  point(beat) {
    this.cursor.hidden = beat === null;
    if (beat === null || !this.perBeat) return;
    const x = beat * this.perBeat;
    this.cursor.style.transform = `translateX(${x}px)`;
    const {scrollLeft, clientWidth} = this.scroller;
    if (clientWidth && (x < scrollLeft || x > scrollLeft + 0.9 * clientWidth))
      this.scroller.scrollLeft = x - 0.1 * clientWidth;
  }
}
