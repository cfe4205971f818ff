// Formats numbers, times and sizes for display.

const WHOLE = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 });
const SHORT = new Intl.NumberFormat(undefined, { notation: 'compact', maximumFractionDigits: 1 });
// A formatter takes far longer to make than to use, and each row of a list formats several times.
const CLOCK = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' });
const CLOCK_SECONDS = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' });
const HOUR = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
const DAY = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' });
const DAY_AND_YEAR = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', year: 'numeric' });
const EXACT = new Intl.DateTimeFormat(undefined, { dateStyle: 'short', timeStyle: 'medium' });

export const count = (value) => (value === null || value === undefined ? '–' : WHOLE.format(value));
export const compact = (value) => (value === null || value === undefined ? '–' : SHORT.format(value));

export function plural(number, one, many = `${one}s`) { return `${count(number)} ${number === 1 ? one : many}`; }

export function cost(value) {
  const number = Number(value);
  if (value === null || value === undefined || Number.isNaN(number)) return '–';
  if (number === 0) return '$0';
  return number < 0.01 ? `$${number.toPrecision(2)}` : `$${number.toFixed(number < 1 ? 3 : 2)}`;
}

export function seconds(value) {
  if (value === null || value === undefined) return '–';
  if (value === 0) return '0 s';
  if (value < 0.001) return `${Math.round(value * 1e6)} µs`;
  if (value < 1) return `${(value * 1000).toFixed(value < 0.01 ? 1 : 0)} ms`;
  return value < 60 ? `${value.toFixed(1)} s` : `${Math.floor(value / 60)} min ${Math.round(value % 60)} s`;
}

/** The name part of a label: everything before the first colon, comma, bracket or semicolon. */
export const brief = (label) => label.split(/[:,(;]/)[0].trim() || label;

export function bytes(value) {
  if (!value) return '';
  if (value < 1024) return `${value} B`;
  return value < 1048576 ? `${(value / 1024).toFixed(0)} KB` : `${(value / 1048576).toFixed(1)} MB`;
}

export function moment(value) {
  if (value === null || value === undefined || value === '') return null;
  const date = typeof value === 'number' ? new Date(value * 1000) : new Date(value);
  return Number.isNaN(date.getTime()) ? null : date;
}

export function when(value) {
  const date = moment(value);
  if (!date) return '';
  const passed = (Date.now() - date) / 1000;
  if (passed < 60 && passed > -60) return 'now';
  if (passed > 0 && passed < 3600) return `${Math.floor(passed / 60)} min ago`;
  if (date.toDateString() === new Date().toDateString()) return clock(value, false);
  return (date.getFullYear() === new Date().getFullYear() ? DAY : DAY_AND_YEAR).format(date);
}

export function clock(value, withSeconds = true) {
  const date = moment(value);
  return date ? (withSeconds ? CLOCK_SECONDS : CLOCK).format(date) : '';
}

/** The label of a point on a time axis: short, and in the 24-hour form of the traffic table. */
export function tick(value, isDay) {
  const date = moment(value);
  return date ? (isDay ? DAY : HOUR).format(date) : '';
}

export function exact(value) {
  const date = moment(value);
  return date ? EXACT.format(date) : '';
}
