// Plays a roll: notes are handed to the synthesiser a little ahead of their time.

const AHEAD = 1.2;  // seconds; timers of a page in the background come once a second
const TICK = 60;    // milliseconds

/** Every note of a roll as {track, note: [start, end, pitch, velocity]}, by start. */
function notesOf(roll) {
  return roll.tracks.flatMap((track) => track.notes.map((note) => ({track, note})))
    .sort((a, b) => a.note[0] - b.note[0]);
}

class Player {
  /** `changed` is called when it starts and stops; `muted(track)`: whether to leave it out. */
  constructor(changed, muted) {
    Object.assign(this, {changed, muted, roll: null, speed: 1, playing: false, at: 0});
  }

  /** The beat that sounds now. */
  beat() {
    if (!this.playing) return this.at;
    const passed = Math.max(0, this.context.currentTime - this.began) * this.speed;
    return Math.min(this.roll.beats, this.map.beat(this.map.seconds(this.at) + passed));
  }

  load(roll, beat = 0) {
    this.stop();
    Object.assign(this, {roll, map: new TempoMap(roll.tempos), at: beat, notes: notesOf(roll)});
  }

  /** Browsers let a page sound only where a click or key asked for it: call it from there. */
  wake() {
    this.context ??= new AudioContext();
    this.context.resume();
  }

  play() {
    if (this.playing || !this.roll) return;
    this.wake();
    if (this.at >= this.roll.beats - 1e-3) this.at = 0;
    this.bus = busOf(this.context);
    this.began = this.context.currentTime + 0.06;
    this.next = this.notes.findIndex(({note}) => note[0] >= this.at - 1e-6);
    if (this.next < 0) this.next = this.notes.length;
    this.playing = true;
    this.timer = setInterval(() => this.tick(), TICK);
    this.tick();
    this.changed();
  }

  /** When a beat sounds, on the clock of the context. */
  when(beat) {
    return this.began + (this.map.seconds(beat) - this.map.seconds(this.at)) / this.speed;
  }

  /** Hands a note to the synthesiser, unless its time is over. */
  sound({track, note: [start, end, pitch, velocity]}) {
    const at = this.when(start);
    if (this.muted(track) || at <= this.context.currentTime - 0.05) return;
    sound(this.context, this.bus, track,
          {pitch, velocity, at: Math.max(at, this.context.currentTime),
           seconds: this.when(end) - at});
  }

  tick() {
    const horizon = this.context.currentTime + AHEAD;
    while (this.next < this.notes.length && this.when(this.notes[this.next].note[0]) <= horizon)
      this.sound(this.notes[this.next++]);
    if (this.beat() >= this.roll.beats) {
      this.stop();
      this.at = 0;
      this.changed();
    }
  }

  stop() {
    if (!this.playing) return;
    this.at = this.beat();
    this.playing = false;
    clearInterval(this.timer);
    const {bus, context} = this;
    bus.gain.setTargetAtTime(0, context.currentTime, 0.02);
    setTimeout(() => bus.disconnect(), 150);
    this.changed();
  }

  /** Does something to where or how it plays, and plays on. */
  change(act) {
    const {playing} = this;
    this.stop();
    act();
    if (playing) this.play();
    else this.changed();
  }

  seek(beat) {
    this.change(() => { this.at = Math.max(0, Math.min(this.roll.beats, beat)); });
  }

  setSpeed(speed) {
    this.change(() => { this.speed = speed; });
  }
}

/** The sound of the first `seconds` of a roll, as an AudioBuffer. */
function render(roll, seconds, rate = 22050) {
  const context = new OfflineAudioContext(1, Math.ceil(seconds * rate), rate);
  const bus = busOf(context);
  const map = new TempoMap(roll.tempos);
  for (const {track, note: [start, end, pitch, velocity]} of notesOf(roll)) {
    const at = map.seconds(start);
    if (at >= seconds) break;
    sound(context, bus, track, {pitch, velocity, at, seconds: map.seconds(end) - at});
  }
  return context.startRendering();
}
