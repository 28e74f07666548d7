// Beats to seconds and back, by the tempos of a piece: [[beat, beats per minute], ...].

class TempoMap {
  constructor(tempos) {
    const first = tempos.length && tempos[0][0] <= 0 ? [] : [[0, 120]];
    let seconds = 0;
    this.parts = [...first, ...tempos].map(([beat, bpm], i, all) => {
      if (i) seconds += (beat - all[i - 1][0]) * 60 / all[i - 1][1];
      return {beat, bpm, seconds};
    });
  }

  partAt(key, value) {
    return this.parts.findLast((part) => part[key] <= value) || this.parts[0];
  }

  seconds(beat) {
    const part = this.partAt('beat', beat);
    return part.seconds + (beat - part.beat) * 60 / part.bpm;
  }

  beat(seconds) {
    const part = this.partAt('seconds', seconds);
    return part.beat + (seconds - part.seconds) * part.bpm / 60;
  }

  bpm(beat) {
    return this.partAt('beat', beat).bpm;
  }
}
