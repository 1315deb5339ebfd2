/** English numbers with units, and "–" for what is not known. */

const UNKNOWN = "–";
/** Formatters by digits, because making one takes longer than a hundred uses. @type {Map<number, Intl.NumberFormat>} */
const formats = new Map();

/** @param {number} value @param {number} digits after the point */
function fixed(value, digits) {
  let format = formats.get(digits);
  if (!format) {
    format = new Intl.NumberFormat("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
    formats.set(digits, format);
  }
  return format.format(value).replace("-", "−");
}

/** @param {unknown} value @returns {value is number} */
const isKnown = (value) => typeof value === "number" && Number.isFinite(value);

/** @param {number | null | undefined} value @param {number} [digits] after the point, 1 unless told */
const score = (value, digits = 1) => isKnown(value) ? fixed(value, digits) : UNKNOWN;

/** @param {number | null | undefined} value */
const integer = (value) => isKnown(value) ? fixed(Math.round(value), 0) : UNKNOWN;

/** US dollars. @param {number | null | undefined} value */
function money(value) {
  if (!isKnown(value)) return UNKNOWN;
  const size = Math.abs(value);
  return `${value < 0 ? "−" : ""}$${fixed(size, size >= 100 ? 0 : size >= 0.1 || size === 0 ? 2 : 4)}`;
}

/** @param {number | null | undefined} seconds */
function duration(seconds) {
  if (!isKnown(seconds)) return UNKNOWN;
  if (Math.abs(seconds) < 0.9995) return `${fixed(seconds * 1000, 0)} ms`;
  if (Math.abs(seconds) < 59.95) return `${fixed(seconds, 1)} s`;
  const whole = Math.round(seconds);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 2880) return `${fixed(Math.floor(minutes / 60), 0)} h ${minutes % 60} min`;
  return `${fixed(seconds / 86400, 1)} days`;
}

const TIME = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium", timeZone: "UTC" });

/** @param {string | null | undefined} iso */
function timeOfDay(iso) {
  if (!iso) return UNKNOWN;
  const time = new Date(iso);
  return Number.isNaN(time.getTime()) ? iso.slice(0, 40) : `${TIME.format(time)} UTC`;
}

/** The largest of any number of values, at least 0; a call has not room for all. @param {number[]} values */
const highest = (values) => values.reduce((most, each) => Math.max(most, each), 0);

/** @param {number} value @param {number} low @param {number} high */
const within = (value, low, high) => Math.max(low, Math.min(value, high));

/** @param {Interval | null | undefined} interval @param {number} [digits] */
const rangeText = (interval, digits) => interval ? `, 95 % interval ${score(interval.low, digits)} to ${score(interval.high, digits)}` : "";
