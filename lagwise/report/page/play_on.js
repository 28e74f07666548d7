// Play on: a model in the page itself goes on from a prompt for as long as one listens.

const LEAD = 8;    // beats of the prompt that are heard first
const STORE = 48;  // beats that are written ahead of what sounds

/** What stands in place of the button where the page was made without the module. */
function missingModule() {
  return el('p', {class: 'note'},
            'Play on needs the module lagwise.wasm, which was not there when this page was made: ' +
            'install Debian’s clang-14, lld-14, wasi-libc, libc++-14-dev-wasm32 and ' +
            'libclang-rt-14-dev-wasm32, then run make demo again.');
}

class PlayOn {
  /** `started` is called before it sounds, so that others can fall silent. */
  constructor({model, roll, layout, tracks, silent, started}) {
    Object.assign(this, {model, roll, tracks, started, tokens: 0, seconds: 0, seed: 0});
    const muted = (track) => silent.has(track.name);
    this.player = new LivePlayer(() => this.follow(), muted);
    this.view = new LiveRoll({layout, bar: roll.bar, prompt: roll.prompt, tracks, hidden: muted,
                              notes: () => this.player.notes || []});
    this.button = el('button', {type: 'button', class: 'play on', onclick: () => this.toggle(),
                                title: 'Let the model go on from the prompt'});
    this.state = el('span', {class: 'time'});
    this.node = el('div', {class: 'live-take', hidden: true}, this.view.node, this.state);
    this.follow();
  }

  get running() {
    return Boolean(this.worker);
  }

  toggle() {
    if (this.running) this.stop();
    else this.start();
  }

  start() {
    this.started();
    this.player.wake();
    const {module, model} = this.model;
    Object.assign(this, {tokens: 0, seconds: 0, bytes: 0, asked: 0, seed: this.seed + 1});
    this.player.load(this.roll, Math.max(0, this.roll.prompt - LEAD));
    this.view.left = 0;
    this.view.redraw();
    this.node.hidden = false;
    this.state.textContent = 'reading the prompt …';
    const sampling = {temperature: 1, topP: 1, ...this.roll.sampling, seed: this.seed};
    this.worker = startModel(
      {module: decoded(module), model: decoded(model), prompt: this.roll.tokens, sampling},
      (message) => this.heard(message));
    this.follow();
  }

  stop() {
    this.worker?.terminate();
    this.worker = null;
    this.player.stop();
    this.follow();
  }

  heard(message) {
    if (message.failed) {
      this.stop();
      this.state.textContent = `It cannot play: ${message.failed}`;
    }
    if (message.tracks) this.own = message.tracks.map(
      (name) => this.roll.tracks.find((track) => track.name === name) || this.tracks[0]);
    if (message.notes) this.take(message);
  }

  take({notes, tokens, seconds, beat, bytes}) {
    const fresh = [];
    for (let i = 0; i < notes.length; i += 5)
      fresh.push({track: this.own[notes[i]], note: [...notes.subarray(i + 1, i + 5)]});
    this.tokens += tokens.length;
    this.seconds += seconds;
    this.bytes = bytes;
    this.player.add(fresh, beat);
    this.view.add(fresh);
    if (!this.player.playing && beat >= this.roll.prompt + LEAD) this.player.play();
    this.ask();
  }

  /** Asks for more where the store runs low. */
  ask() {
    const goal = Math.max(this.player.beat(), this.roll.prompt) + STORE;
    if (!this.running || goal < this.asked + 4) return;
    this.asked = goal;
    this.worker.postMessage({until: goal});
  }

  redraw() {
    this.view.redraw();
  }

  follow() {
    const {player, running} = this;
    this.button.textContent = running ? '■ Stop' : '∞ Play on';
    this.button.setAttribute('aria-pressed', running);
    cancelAnimationFrame(this.frame);
    if (!running) return;
    if (player.playing) {
      const beat = player.beat();
      this.view.point(beat);
      const figures = this.figures(beat);
      if (this.state.textContent !== figures) this.state.textContent = figures;
      this.ask();
    }
    this.frame = requestAnimationFrame(() => this.follow());
  }

  figures(beat) {
    const speed = this.seconds > 0 ? this.tokens / this.seconds : 0;
    return `bar ${Math.floor(beat / this.roll.bar) + 1} · ${format(this.tokens, 'count')} tokens, ` +
      `${format(Math.round(speed), 'count')} a second · ${format(this.bytes, 'bytes')} of memory`;
  }
}
