// How numbers are written. Kinds: number, count, bytes, seconds, percent.

const MINUS = '\u2212';
const signed = (text) => text.replace('-', MINUS);

function significant(x, digits) {
  if (x === 0) return '0';
  const size = Math.abs(x);
  if (size >= 1e7 || size < 1e-4) return signed(x.toExponential(digits - 2));
  const decimals = Math.max(0, digits - 1 - Math.floor(Math.log10(size)));
  return signed(x.toLocaleString('en', {
    maximumFractionDigits: decimals,
    minimumFractionDigits: Number.isInteger(x) ? 0 : Math.min(decimals, 3),
  }));
}

function scaled(x, step, units) {
  let i = 0;
  let size = Math.abs(x);
  while (size >= step && i + 1 < units.length) {
    size /= step;
    i += 1;
  }
  const digits = i === 0 || size >= 100 ? 0 : size >= 10 ? 1 : 2;
  const text = size.toFixed(digits).replace(/\.?0+$/, (zeros) => (digits ? '' : zeros));
  return `${x < 0 ? MINUS : ''}${text}${units[i]}`;
}

/** As the tables of the program write them: a MB is a million. */
function bytes(x) {
  if (x < 1e3) return `${Math.round(x)} B`;
  if (x < 1e6) return `${(x / 1e3).toFixed(0)} kB`;
  return x < 1e9 ? `${(x / 1e6).toFixed(1)} MB` : `${(x / 1e9).toFixed(2)} GB`;
}

function duration(seconds) {
  if (seconds < 60) return `${significant(seconds, 2)} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, '0')} min`;
}

/** A value as a reader wants it. */
function format(x, kind = 'number') {
  if (x === null || x === undefined || Number.isNaN(x)) return '–';
  if (typeof x === 'string') return x;
  if (kind === 'count') {
    return Math.abs(x) < 1e4 ? x.toLocaleString('en', {maximumFractionDigits: 0})
                             : scaled(x, 1000, ['', 'k', 'M', 'G', 'T']);
  }
  if (kind === 'bytes') return bytes(x);
  if (kind === 'seconds') return duration(x);
  if (kind === 'percent') return `${significant(100 * x, 3)} %`;
  return significant(x, 4);
}

/** Numbers beside an axis: as many decimals as tell its ticks apart. */
function formatTick(x, kind, step) {
  if (kind === 'count' && Math.abs(x) < 1e6 && x === Math.round(x)) return signed(x.toLocaleString('en'));
  if (kind === 'bytes') return format(x, kind).replace(/\.0+ /, ' ');
  if (kind !== 'number' && !(kind === 'count' && step < 1)) return format(x, kind);
  if (Math.abs(x) >= 1e4) return format(x, 'count');
  if (step >= 1 || Number.isInteger(x)) return signed(String(x));
  if (!step || step < 1e-6) return significant(x, 3);
  return signed(x.toFixed(Math.min(6, Math.ceil(-Math.log10(step) - 1e-9))));
}
