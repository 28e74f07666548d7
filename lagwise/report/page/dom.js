// Elements from words, and what the rest of the page needs of the browser.

const SVG = 'http://www.w3.org/2000/svg';  // a name, not an address that is fetched

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? '' : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

/** el('p', {class: 'note', onclick: f}, 'text', child) */
function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** Calls `draw(width)` now and whenever the width of `node` changes. */
function onWidth(node, draw) {
  let last = 0;
  new ResizeObserver(() => {
    const width = Math.floor(node.clientWidth);
    if (width > 0 && width !== last) draw((last = width));
  }).observe(node);
}

/** The colour a style comes to, as canvases want it: 'var(--ink)' -> 'rgb(...)'. */
function resolved(colour) {
  const probe = el('span', {style: `color: ${colour}; display: none`});
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}

/** Saves text as a file of the reader's. */
function download(name, text, type = 'text/csv') {
  const address = URL.createObjectURL(new Blob([text], {type}));
  const link = el('a', {href: address, download: name});
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

function slug(text) {
  return text.toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-+|-+$/g, '').slice(0, 60);
}

/** Rows of values as CSV (RFC 4180). */
function csv(rows) {
  const cell = (value) => {
    const text = value === null || value === undefined ? '' : String(value);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rows.map((row) => row.map(cell).join(',')).join('\r\n') + '\r\n';
}

function saveButton(name, rows) {
  return el('button', {
    class: 'quiet', type: 'button', title: `Save as ${slug(name)}.csv`,
    'aria-label': `Save the data of “${name}” as CSV`,
    onclick: () => download(`${slug(name)}.csv`, csv(rows())),
  }, '↓ CSV');
}
