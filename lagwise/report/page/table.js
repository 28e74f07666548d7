// A table that sorts by the column clicked, marks the best of each and can be saved.

class Table {
  constructor(spec, who) {
    Object.assign(this, {spec, who});
    this.order = spec.rows.map((_, i) => i);
    this.sorted = {column: -1, down: false};
    this.body = el('tbody');
    this.heads = spec.columns.map((column, i) => this.head(column, i));
    const table = el('table', {}, el('caption', {class: 'unseen'}, spec.title),
                     el('thead', {}, el('tr', {}, this.heads)), this.body);
    this.node = el('figure', {class: 'card wide'},
                   el('header', {}, el('h3', {}, spec.title),
                      saveButton(spec.title, () => this.rows())),
                   el('div', {class: 'table', tabindex: 0, role: 'region',
                              'aria-label': spec.title}, table),
                   spec.note ? el('p', {class: 'note'}, spec.note) : null);
    who.watch(() => this.draw());
    this.draw();
  }

  head(column, i) {
    return el('th', {scope: 'col', title: column.help || null,
                     class: column.format === 'text' ? 'text' : null},
              el('button', {type: 'button', onclick: () => this.sort(i)}, column.label));
  }

  sort(column) {
    const better = this.spec.columns[column].better > 0;
    const down = this.sorted.column === column ? !this.sorted.down : better;
    this.sorted = {column, down};
    const key = (row) => this.spec.rows[row][column];
    this.order.sort((a, b) => {
      const [x, y] = [key(a), key(b)];
      if (x === null || y === null) return (x === null) - (y === null) || a - b;
      const rises = typeof x === 'string' || typeof y === 'string'
        ? String(x).localeCompare(String(y)) : x - y;
      return (down ? -rises : rises) || a - b;
    });
    this.heads.forEach((head, i) => {
      if (i === column) head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
      else head.removeAttribute('aria-sort');
    });
    this.draw();
  }

  /** The best value of a column among the rows shown, where one is better. */
  best(column) {
    const {better} = this.spec.columns[column];
    const values = this.order.filter((row) => this.who.shows(this.spec.rows[row][0]))
      .map((row) => this.spec.rows[row][column]).filter((x) => typeof x === 'number');
    const [low, high] = [Math.min(...values), Math.max(...values)];
    if (!better || !(low < high)) return null;
    return better > 0 ? high : low;
  }

  draw() {
    const best = this.spec.columns.map((_, i) => this.best(i));
    this.body.replaceChildren(...this.order.map((row) => {
      const cells = this.spec.rows[row];
      return el('tr', {class: this.who.shows(cells[0]) ? null : 'off'},
                cells.map((cell, i) => this.cell(cell, i, best[i])));
    }));
  }

  cell(value, i, best) {
    const {format: kind} = this.spec.columns[i];
    if (i === 0) return el('th', {scope: 'row'}, this.name(value));
    const good = best !== null && value === best;
    return el('td', {class: [kind === 'text' ? 'text' : '', good ? 'best' : ''].join(' ').trim()
                            || null},
              kind === 'text' ? value ?? '–' : format(value, kind),
              good ? el('span', {class: 'unseen'}, ' best') : null);
  }

  name(value) {
    if (!this.spec.named) return format(value, this.spec.columns[0].format);
    // Names are long words of many: where they break, let it be behind a sign.
    return [this.who.swatch(value),
            ...value.split(/(?<=[~+,:=/])/).flatMap((part, i) => (i ? [el('wbr'), part] : part))];
  }

  rows() {
    return [this.spec.columns.map((c) => c.label), ...this.order.map((i) => this.spec.rows[i])];
  }
}
