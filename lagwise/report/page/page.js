// Puts the page together from its data: sections of charts, tables, samples and music.

/** Charts in one card; where there are several, one shows at a time, by its tab. */
function chartCard(block, who) {
  const panels = block.charts.map((spec) => ({spec, chart: null}));
  const holder = el('div');
  const title = el('h3');
  const note = el('p', {class: 'note'});
  let current = null;
  const tabs = panels.map((panel, i) => el('button', {
    type: 'button', role: 'tab', onclick: () => show(i),
    onkeydown: (event) => {
      const step = {ArrowLeft: -1, ArrowRight: 1}[event.key];
      if (!step) return;
      const next = (i + step + panels.length) % panels.length;
      show(next);
      tabs[next].focus();
    },
  }, panel.spec.tab || panel.spec.title));
  function show(i) {
    current = panels[i];
    current.chart ??= new Chart(current.spec, block.own ? new Identities([]) : who);
    tabs.forEach((tab, j) => {
      tab.setAttribute('aria-selected', i === j);
      tab.tabIndex = i === j ? 0 : -1;
    });
    title.textContent = current.spec.title;
    note.textContent = current.spec.note || '';
    holder.replaceChildren(current.chart.node);
  }
  show(0);
  return el('figure', {class: 'card'},
            el('header', {}, title,
               panels.length > 1 ? el('div', {role: 'tablist', class: 'tabs'}, tabs) : null,
               saveButton(current.spec.title, () => current.chart.rows())),
            holder, note);
}

/** What a model wrote, the prompt told apart. */
function sampleCard(block, who) {
  const samples = block.samples.map(({run, prompt, text, note}) => {
    const node = el('article', {class: 'sample'},
                    el('h4', {}, who.swatch(run), run),
                    el('blockquote', {tabindex: 0},
                       prompt ? el('span', {class: 'prompt', title: 'prompt'}, prompt) : null,
                       text),
                    note ? el('p', {class: 'note'}, note) : null);
    who.watch(() => { node.hidden = !who.shows(run); });
    return node;
  });
  return el('figure', {class: 'card wide'}, el('header', {}, el('h3', {}, block.title)),
            el('div', {class: 'samples'}, samples));
}

function blockNode(block, who, data) {
  if (block.kind === 'charts') return chartCard(block, who);
  if (block.kind === 'table') return new Table(block, who).node;
  if (block.kind === 'samples') return sampleCard(block, who);
  if (block.kind === 'music') return new MusicCard(block, who, data.playOn).node;
  return el('p', {class: 'wide'}, block.text);
}

function themeButton() {
  const system = matchMedia('(prefers-color-scheme: dark)');
  const stored = () => {
    try { return localStorage.getItem('lagwise-theme'); } catch { return null; }
  };
  const button = el('button', {class: 'quiet', type: 'button', id: 'theme', onclick: () => {
    const next = document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark';
    try { localStorage.setItem('lagwise-theme', next); } catch { /* not kept */ }
    set(next);
  }});
  function set(theme) {
    document.documentElement.dataset.theme = theme;
    button.textContent = theme === 'dark' ? '☀ light' : '☾ dark';
    button.setAttribute('aria-label', `Switch to ${theme === 'dark' ? 'light' : 'dark'} colours`);
    document.dispatchEvent(new Event('theme'));
  }
  system.addEventListener('change', () => stored() || set(system.matches ? 'dark' : 'light'));
  set(stored() || (system.matches ? 'dark' : 'light'));
  return button;
}

function build(data) {
  const who = new Identities(data.names);
  const page = document.getElementById('page');
  page.append(el('header', {class: 'top'},
                 el('div', {}, el('h1', {}, data.title),
                    data.lede ? el('p', {class: 'lede'}, data.lede) : null),
                 themeButton()));
  const wide = data.sections.filter((section) => section.title);
  if (wide.length > 2) page.append(el('nav', {'aria-label': 'Sections'}, wide.map(
    (section) => el('a', {href: `#${slug(section.title)}`}, section.title))));
  for (const section of data.sections) {
    page.append(el('section', {id: slug(section.title)},
                   section.title ? el('h2', {}, section.title) : null,
                   section.note ? el('p', {class: 'say'}, section.note) : null,
                   el('div', {class: 'blocks'},
                      section.blocks.map((block) => blockNode(block, who, data)))));
  }
  if (data.foot) page.append(el('footer', {}, data.foot));
}

const data = JSON.parse(document.getElementById('data').textContent);
build(data);
globalThis.lagwise = {data, render, Scale, formatTick, startModel, decoded};  // for the console, and for tests
