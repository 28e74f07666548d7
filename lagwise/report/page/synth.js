// A small synthesiser: oscillators, a filter and an envelope for tones, shaped noise for
// drums. Takes any AudioContext, one that sounds or one that renders.

// Voices by the families of General MIDI (eight programs each). Seconds; `bright`: where
// the filter closes, in multiples of the tone's frequency; `second`: a second oscillator,
// [wave, octave, share].
const STRUCK = {wave: 'triangle', second: ['sine', 1, 0.25], attack: 0.004, decay: 0.9,
                sustain: 0.12, release: 0.15, bright: 7, gain: 0.5};
const ORGAN = {wave: 'sine', second: ['triangle', 1, 0.35], attack: 0.02, decay: 0.1,
               sustain: 0.8, release: 0.08, bright: 6, gain: 0.3};
const PLUCKED = {wave: 'sawtooth', second: ['triangle', 0, 0.5], attack: 0.004, decay: 0.5,
                 sustain: 0.1, release: 0.12, bright: 4, gain: 0.32};
const BASS = {wave: 'sawtooth', second: ['sine', 0, 0.9], attack: 0.006, decay: 0.35,
              sustain: 0.45, release: 0.08, bright: 3.5, gain: 0.5};
const BOWED = {wave: 'sawtooth', second: ['sawtooth', 0.005, 0.8], attack: 0.09, decay: 0.2,
               sustain: 0.75, release: 0.25, bright: 4, gain: 0.18};
const BLOWN = {wave: 'square', second: ['sine', 0, 0.8], attack: 0.03, decay: 0.15,
               sustain: 0.7, release: 0.1, bright: 4, gain: 0.2};
const FAMILIES = [STRUCK, STRUCK, ORGAN, PLUCKED, BASS, BOWED, BOWED, BLOWN, BLOWN, BLOWN,
                  BLOWN, BOWED, BOWED, PLUCKED, STRUCK, STRUCK];

const frequencyOf = (pitch) => 440 * 2 ** ((pitch - 69) / 12);

function tone(context, out, voice, {pitch, velocity, at, seconds}) {
  const frequency = frequencyOf(pitch);
  const peak = voice.gain * (velocity / 127) ** 1.5;
  const end = at + Math.max(0.04, seconds);
  const envelope = context.createGain();
  envelope.gain.setValueAtTime(0, at);
  envelope.gain.linearRampToValueAtTime(peak, at + voice.attack);
  envelope.gain.setTargetAtTime(peak * voice.sustain, at + voice.attack, voice.decay / 2);
  envelope.gain.setTargetAtTime(0, end, voice.release / 3);
  const filter = context.createBiquadFilter();
  filter.frequency.value = Math.min(9000, frequency * voice.bright);
  filter.connect(envelope).connect(out);
  const [wave, octave, share] = voice.second;
  for (const [shape, factor, loud] of [[voice.wave, 1, 1], [wave, 2 ** octave, share]]) {
    const oscillator = context.createOscillator();
    const level = context.createGain();
    oscillator.type = shape;
    oscillator.frequency.value = frequency * factor;
    level.gain.value = loud / (1 + share);
    oscillator.connect(level).connect(filter);
    oscillator.start(at);
    oscillator.stop(end + 2 * voice.release);
  }
}

/** A second of white noise, the same every time. */
function noiseOf(context) {
  if (context.lagwiseNoise) return context.lagwiseNoise;
  const buffer = context.createBuffer(1, context.sampleRate, context.sampleRate);
  const samples = buffer.getChannelData(0);
  for (let i = 0, state = 1; i < samples.length; ++i) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    samples[i] = state / 2 ** 31 - 1;
  }
  return (context.lagwiseNoise = buffer);
}

// What a drum is made of: `body`: a falling tone [from Hz, to Hz, seconds, level];
// `noise`: filtered noise [kind, Hz, seconds, level].
const DRUMS = {
  kick: {body: [150, 45, 0.16, 0.95]},
  snare: {body: [220, 160, 0.08, 0.35], noise: ['highpass', 1400, 0.14, 0.5]},
  rim: {body: [900, 700, 0.03, 0.35]},
  clap: {noise: ['bandpass', 1500, 0.13, 0.8]},
  hat: {noise: ['highpass', 7500, 0.045, 0.35]},
  open: {noise: ['highpass', 6500, 0.3, 0.32]},
  ride: {noise: ['bandpass', 8500, 0.28, 0.4]},
  crash: {noise: ['highpass', 4000, 0.9, 0.4]},
  bell: {body: [560, 540, 0.12, 0.25]},
  shaker: {noise: ['bandpass', 6000, 0.06, 0.4]},
};
const DRUM_OF = {35: 'kick', 36: 'kick', 37: 'rim', 38: 'snare', 39: 'clap', 40: 'snare',
                 42: 'hat', 44: 'hat', 46: 'open', 49: 'crash', 51: 'ride', 52: 'crash',
                 53: 'bell', 54: 'shaker', 55: 'crash', 56: 'bell', 57: 'crash', 59: 'ride',
                 69: 'shaker', 70: 'shaker', 75: 'rim', 76: 'rim', 77: 'rim', 82: 'shaker'};
const TOMS = [41, 43, 45, 47, 48, 50];

function drumOf(pitch) {
  const name = DRUM_OF[pitch];
  if (name) return DRUMS[name];
  const high = TOMS.includes(pitch) ? 90 + 14 * (pitch - 41) : 250 + 4 * (pitch % 32);
  return {body: [high * 1.4, high, 0.18, 0.7]};
}

function drum(context, out, {pitch, velocity, at}) {
  const {body, noise} = drumOf(pitch);
  const loud = (velocity / 127) ** 1.3;
  const shaped = (source, seconds, level) => {
    const envelope = context.createGain();
    envelope.gain.setValueAtTime(level * loud, at);
    envelope.gain.exponentialRampToValueAtTime(1e-4, at + seconds);
    source.connect(envelope).connect(out);
    return at + seconds;
  };
  if (body) {
    const [from, to, seconds, level] = body;
    const oscillator = context.createOscillator();
    oscillator.frequency.setValueAtTime(from, at);
    oscillator.frequency.exponentialRampToValueAtTime(to, at + seconds);
    const end = shaped(oscillator, seconds * 1.6, level);
    oscillator.start(at);
    oscillator.stop(end);
  }
  if (noise) {
    const [kind, frequency, seconds, level] = noise;
    const source = context.createBufferSource();
    source.buffer = noiseOf(context);
    source.loop = true;
    const filter = context.createBiquadFilter();
    filter.type = kind;
    filter.frequency.value = Math.min(frequency, context.sampleRate * 0.45);
    source.connect(filter);
    const end = shaped(filter, seconds, level);
    source.start(at);
    source.stop(end);
  }
}

/** One note of a track, {pitch, velocity, at, seconds}. */
function sound(context, out, track, note) {
  if (track.drums) drum(context, out, note);
  else tone(context, out, FAMILIES[track.program >> 3] || STRUCK, note);
}

/** A bus whose peaks are held down, into the context's output. */
function busOf(context) {
  const bus = context.createGain();
  bus.gain.value = 0.5;
  const limit = context.createDynamicsCompressor();
  limit.threshold.value = -14;
  limit.ratio.value = 8;
  bus.connect(limit).connect(context.destination);
  return bus;
}
