// From a quantity to its share, 0 to 1, of the length of an axis.

/** `rough` rounded to 1, 2 or 5 times a power of ten. */
function niceStep(rough) {
  const power = 10 ** Math.floor(Math.log10(rough));
  const share = rough / power;
  return power * (share < 1.5 ? 1 : share < 3.5 ? 2 : share < 7.5 ? 5 : 10);
}

class Scale {
  constructor(low, high, logarithmic) {
    Object.assign(this, {low, high, logarithmic});
  }

  share(x) {
    if (this.logarithmic) return Math.log(x / this.low) / Math.log(this.high / this.low);
    return (x - this.low) / (this.high - this.low);
  }

  holds(x) {
    return Number.isFinite(x) && (!this.logarithmic || x > 0);
  }

  /** Where to write numbers, about `count` of them, and the step between them. `whole`: what is
      counted has no halves, so whole numbers, where there are two of them. */
  ticks(count, whole = false) {
    if (this.logarithmic) return this.powers(count);
    const fine = this.steps(niceStep((this.high - this.low) / Math.max(1, count)));
    if (!whole || fine.step >= 1) return fine;
    const coarse = this.steps(1);
    return coarse.values.length > 1 ? coarse : fine;
  }

  steps(step) {
    const values = [];
    for (let i = Math.ceil(this.low / step - 1e-9); i * step <= this.high + 1e-9 * step; ++i)
      values.push(Number((i * step).toPrecision(12)));
    return {values, step};
  }

  /** Powers of ten, or of two where there are few of ten; every one, or every 2nd, ... */
  powers(count) {
    const root = this.high / this.low > 3e3 ? 10 : 2;
    const power = (x) => Math.log(x) / Math.log(root);
    const first = Math.ceil(power(this.low) - 1e-9);
    const last = Math.floor(power(this.high) + 1e-9);
    if (last <= first) return this.steps(niceStep((this.high - this.low) / Math.max(1, count)));
    const every = Math.max(1, Math.ceil((last - first + 1) / (count + 1)));
    const values = [];
    for (let i = first; i <= last; i += every)
      values.push(Number((root ** i).toPrecision(12)));
    return {values, step: values[0]};
  }

  /** Widened, so that curves keep off its ends; to halves of steps where it is linear. */
  widened(count) {
    if (this.logarithmic) {
      const more = (this.high / this.low) ** 0.04;
      return new Scale(this.low / more, this.high * more, true);
    }
    const step = niceStep((this.high - this.low) / Math.max(1, count)) / 2;
    const more = 0.02 * (this.high - this.low);
    const low = Math.floor((this.low - more) / step) * step;
    return new Scale(this.low >= 0 ? Math.max(0, low) : low,
                     Math.ceil((this.high + more) / step) * step, false);
  }
}

/** The scale that just holds every number an axis of that kind can hold. */
function scaleOf(numbers, logarithmic) {
  let low = Infinity;
  let high = -Infinity;
  for (const x of numbers) {
    if (x === null || !Number.isFinite(x) || (logarithmic && x <= 0)) continue;
    low = Math.min(low, x);
    high = Math.max(high, x);
  }
  if (low > high) [low, high] = logarithmic ? [1, 10] : [0, 1];
  if (!(high - low > 1e-9 * Math.abs(high))) {
    const more = logarithmic ? 0 : 0.5 * Math.abs(high) || 0.5;
    [low, high] = logarithmic ? [low / 2, high * 2] : [low - more, high + more];
  }
  return new Scale(low, high, logarithmic);
}
