// Plays music that has no end, while it is being written: notes come in, sound, and are let
// go once they are out of sight.

const BEHIND = 96;  // beats that are kept, for a roll that is drawn anew

class LivePlayer extends Player {
  constructor(changed, muted) {
    super(changed, muted);
    this.reached = 0;  // the beat up to which everything is written
  }

  load(roll, beat) {
    super.load({...roll, tracks: [], beats: Infinity}, beat);
    this.reached = 0;
  }

  /** Notes {track, note} in any order, and the beat up to which there will be no others. */
  add(notes, reached) {
    this.reached = reached;
    for (const one of notes) {
      let at = this.notes.length;
      while (at > 0 && this.notes[at - 1].note[0] > one.note[0]) --at;
      this.notes.splice(at, 0, one);
      if (!this.playing || at >= this.next) continue;
      this.sound(one);  // it belongs to what has begun
      ++this.next;
    }
    const old = this.notes.findIndex(({note}) => note[1] >= this.beat() - BEHIND);
    if (old > 0) {
      this.notes.splice(0, old);
      this.next = Math.max(0, this.next - old);
    }
  }

  /** Holds its breath while the model is behind. */
  tick() {
    const starved = this.beat() > this.reached - 1;
    if (starved) this.context.suspend();
    else this.context.resume();
    super.tick();
  }
}
