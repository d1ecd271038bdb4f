// Numbers and times as people read them.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const small = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

export function count(value) {
  return value === null || value === undefined ? "–" : whole.format(value);
}

// Something a second: digits behind the point only where they matter.
export function rate(value) {
  if (!value) return "0";
  return value < 0.05 ? "<0.1" : value < 100 ? small.format(value) : whole.format(value);
}

const SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR;

export function duration(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms < 0) return "-" + duration(-ms);
  if (ms < SECOND) return `${Math.round(ms)} ms`;
  if (ms < MINUTE) return `${(Math.floor(ms / 100) / 10).toFixed(1)} s`;
  const two = (value) => String(Math.floor(value)).padStart(2, "0");
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min ${two((ms % MINUTE) / SECOND)} s`;
  if (ms < DAY) return `${Math.floor(ms / HOUR)} h ${two((ms % HOUR) / MINUTE)} min`;
  return `${Math.floor(ms / DAY)} d ${two((ms % DAY) / HOUR)} h`;
}

export function bytes(value) {
  let unit = 0;
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  for (; value >= 1024 && unit < units.length - 1; unit++) value /= 1024;
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`;
}

const TWO = "2-digit";
const time = { hour: TWO, minute: TWO, second: TWO, timeZoneName: "short" };

// With the zone, which is the browser's.
export function clock(ms) {
  return new Date(ms).toLocaleTimeString("en-GB", time);
}

export function moment(ms) {
  return `${new Date(ms).toLocaleDateString("en-CA")} ${clock(ms)}`;
}

// "client_offline" as words.
export function words(name) {
  return name.replaceAll("_", " ");
}

// A word of a command line for a POSIX shell.
export function quoted(word) {
  return /^[A-Za-z0-9_.\/:@%+=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
