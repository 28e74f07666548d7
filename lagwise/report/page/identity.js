// Who a curve belongs to: its colour, its mark and whether it is shown. A run has the
// same ones in every chart, table and piano roll of the page.

const COLOURS = 8;  // --c0 ... --c7 in the style
const MARKS = [  // outlines round 0, of about the same weight
  'M-4,0A4,4 0 1 0 4,0A4,4 0 1 0 -4,0Z',
  'M-3.5,-3.5H3.5V3.5H-3.5Z',
  'M0,-4.7L4.3,3.2H-4.3Z',
  'M0,-5L5,0L0,5L-5,0Z',
  'M0,4.7L4.3,-3.2H-4.3Z',
  'M-4.6,-1.6H-1.6V-4.6H1.6V-1.6H4.6V1.6H1.6V4.6H-1.6V1.6H-4.6Z',
];

class Identities {
  constructor(names) {
    this.names = [...names];
    this.hidden = new Set();
    this.watchers = [];
  }

  index(name) {
    if (!this.names.includes(name)) this.names.push(name);
    return this.names.indexOf(name);
  }

  colour(name) {
    return `var(--c${this.index(name) % COLOURS})`;
  }

  mark(name) {
    return MARKS[this.index(name) % MARKS.length];
  }

  shows(name) {
    return !this.hidden.has(name);
  }

  /** Hides or shows `name`; `alone`: hides all others of `among`, or shows them again. */
  toggle(name, among, alone = false) {
    if (alone) {
      const others = among.filter((other) => other !== name);
      const is = this.shows(name) && others.every((other) => !this.shows(other));
      for (const other of others) this.hidden[is ? 'delete' : 'add'](other);
      this.hidden.delete(name);
    } else if (!this.hidden.delete(name)) {
      this.hidden.add(name);
    }
    for (const watcher of this.watchers) watcher();
  }

  watch(watcher) {
    this.watchers.push(watcher);
  }

  /** A short piece of the curve, as legends show it. */
  swatch(name) {
    return svg('svg', {class: 'swatch', viewBox: '-12 -6 24 12', 'aria-hidden': 'true'},
               svg('line', {x1: -12, x2: 12, stroke: this.colour(name)}),
               svg('path', {d: this.mark(name), fill: this.colour(name)}));
  }

  /** Buttons that hide and show; with shift or a double click, one alone. */
  legend(names) {
    const buttons = names.map((name) => el('button', {
      type: 'button', class: 'key', 'aria-pressed': 'true',
      title: 'Click: hide or show. Double click: this one alone.',
      onclick: (event) => this.toggle(name, names, event.shiftKey),
      ondblclick: () => this.toggle(name, names, true),
    }, this.swatch(name), el('span', {}, name)));
    const update = () => buttons.forEach(
      (button, i) => button.setAttribute('aria-pressed', this.shows(names[i])));
    this.watch(update);
    update();
    return el('div', {class: 'legend', role: 'group', 'aria-label': 'Curves'}, buttons);
  }
}
