// Continuations to see and to hear: rolls of several models one below the other, and what
// plays them.

const clock = (seconds) =>
  `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, '0')}`;

class MusicCard {
  /** `playOn`: a model that can go on, {run, module, model}; or undefined. */
  constructor(block, who, playOn) {
    Object.assign(this, {block, who, playOn, silent: new Set(), views: [], live: null});
    this.player = new Player(() => this.follow(), (track) => this.silent.has(track.name));
    this.rolls = el('div', {class: 'rolls'});
    this.tracks = el('div', {class: 'legend', role: 'group', 'aria-label': 'Tracks'});
    this.node = el('figure', {class: 'card wide music'},
                   el('header', {}, el('h3', {}, block.title), this.chooser(),
                      saveButton(block.title, () => this.rows())),
                   this.transport(), el('div', {class: 'settings'}, this.tracks, this.paces()),
                   this.rolls);
    document.addEventListener('theme', () => this.redraw());
    this.show(0);
  }

  chooser() {
    if (this.block.pieces.length < 2) return null;
    return el('label', {class: 'choose'}, 'Prompt ', el('select', {
      onchange: (event) => this.show(Number(event.target.value)),
    }, this.block.pieces.map((piece, i) => el('option', {value: i}, piece.title))));
  }

  transport() {
    this.button = el('button', {type: 'button', class: 'play', onclick: () => this.toggle()});
    this.place = el('input', {type: 'range', min: 0, step: 0.01, 'aria-label': 'Place in the piece',
                              oninput: () => this.player.seek(Number(this.place.value))});
    this.time = el('span', {class: 'time'});
    return el('div', {class: 'transport'}, this.button, this.place, this.time);
  }

  paces() {
    this.tempo = el('input', {type: 'range', min: 50, max: 200, step: 1, value: 100,
                              'aria-label': 'Tempo, percent', oninput: () => {
                                this.player.setSpeed(this.tempo.value / 100);
                                this.live?.player.setSpeed(this.tempo.value / 100);
                                this.follow();
                              }});
    this.pace = el('span', {class: 'time'});
    return el('label', {class: 'tempo'}, 'Tempo ', this.tempo, this.pace);
  }

  show(number) {
    this.player.stop();
    this.live?.stop();
    this.piece = this.block.pieces[number];
    const {rolls} = this.piece;
    const all = rolls.flatMap((roll) => roll.tracks);
    const tracks = all.filter((one, i) => all.findIndex((o) => o.name === one.name) === i);
    const layout = layoutOf(rolls);
    this.views = rolls.map((roll) => new RollView(
      roll, layout, tracks, (track) => this.silent.has(track.name), (beat) => this.start(roll, beat)));
    this.buttons = rolls.map((roll) => el('button', {
      type: 'button', class: 'play small', 'aria-label': `Play ${roll.run}`,
      onclick: () => (this.player.roll === roll ? this.toggle() : this.start(roll, this.player.at)),
    }, '▶'));
    this.live = this.liveOf(rolls, tracks);
    this.rolls.replaceChildren(...this.views.map((view, i) => this.row(view, this.buttons[i])));
    this.tracks.replaceChildren(...tracks.map(({name}) => this.trackButton(
      name, trackColour(tracks, name))));
    for (const view of this.views) view.scroller.addEventListener('scroll', () => {
      for (const other of this.views)
        if (other.scroller.scrollLeft !== view.scroller.scrollLeft)
          other.scroller.scrollLeft = view.scroller.scrollLeft;
    });
    this.player.load(rolls[0]);
    this.follow();
  }

  /** What plays on from this piece; null where no model does. */
  liveOf(rolls, tracks) {
    const {playOn, silent} = this;
    const roll = playOn && rolls.find(({run, tokens}) => run === playOn.run && tokens);
    if (!roll || !playOn.module) return null;
    return new PlayOn({model: playOn, roll, layout: layoutOf([roll]), tracks, silent,
                       started: () => this.player.stop()});
  }

  row(view, button) {
    const {run, note} = view.roll;
    const live = this.live?.roll === view.roll ? this.live : null;
    const node = el('div', {class: 'take'},
                    el('h4', {}, button, this.who.swatch(run), run,
                       note ? el('small', {}, note) : null, live?.button),
                    view.scroller, live?.node, view.roll.tokens && !live ? missingModule() : null);
    view.scroller.addEventListener('keydown', (event) => this.key(event, view.roll));
    const update = () => { node.hidden = !this.who.shows(run); };
    this.who.watch(update);
    update();
    return node;
  }

  trackButton(name, colour) {
    const button = el('button', {type: 'button', class: 'key', 'aria-pressed': 'true',
                                 title: 'Click: mute or sound', onclick: () => {
      if (!this.silent.delete(name)) this.silent.add(name);
      button.setAttribute('aria-pressed', !this.silent.has(name));
      this.player.change(() => {});
      this.live?.player.change(() => {});
      this.redraw();
    }}, el('span', {class: 'chip', style: `background: ${colour}`}), name);
    button.setAttribute('aria-pressed', !this.silent.has(name));
    return button;
  }

  /** In a roll: space plays and stops, arrows go a bar back and on. */
  key(event, roll) {
    const bars = {ArrowLeft: -1, ArrowRight: 1, ' ': 0}[event.key];
    if (bars === undefined) return;
    event.preventDefault();
    const {player} = this;
    if (bars) {
      if (player.roll !== roll) player.load(roll, player.at);
      player.seek(player.beat() + bars * roll.bar);
    } else if (player.roll === roll) {
      this.toggle();
    } else {
      this.start(roll, player.beat());
    }
  }

  start(roll, beat) {
    this.live?.stop();
    this.player.load(roll, Math.min(beat, roll.beats));
    this.player.play();
  }

  toggle() {
    this.live?.stop();
    if (this.player.playing) this.player.stop();
    else this.player.play();
  }

  redraw() {
    for (const view of this.views) view.draw();
    this.live?.redraw();
  }

  /** Shows where the player is, and goes on while it plays. */
  follow() {
    const {player} = this;
    if (!player.roll) return;
    const beat = player.beat();
    this.button.textContent = player.playing ? '■ Stop' : '▶ Play';
    this.place.max = player.roll.beats;
    this.place.value = beat;
    this.time.textContent = `${clock(player.map.seconds(beat) / player.speed)} / ${
      clock(player.map.seconds(player.roll.beats) / player.speed)}`;
    this.pace.textContent = `${Math.round(player.map.bpm(beat) * player.speed)} bpm`;
    this.views.forEach((view, i) => {
      const own = view.roll === player.roll;
      view.point(own && (player.playing || beat > 0) ? beat : null);
      this.buttons[i].textContent = own && player.playing ? '■' : '▶';
      view.scroller.classList.toggle('current', own);
    });
    cancelAnimationFrame(this.frame);
    if (player.playing) this.frame = requestAnimationFrame(() => this.follow());
  }

  rows() {
    return [['run', 'track', 'start beat', 'end beat', 'pitch', 'velocity'],
            ...this.piece.rolls.flatMap((roll) => notesOf(roll).map(
              ({track, note}) => [roll.run, track.name, ...note]))];
  }
}
