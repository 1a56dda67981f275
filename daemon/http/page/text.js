// Numbers and times as text. Pure.

const plain = new Intl.NumberFormat('en-US');
export const numberOf = (value) => plain.format(value);
export const countOf = (count, thing) => `${numberOf(count)} ${thing}${count === 1 ? '' : 's'}`;

export function bytesOf(bytes) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let value = bytes,
    unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    ++unit;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

export function spanOf(ms) {
  if (ms < 1) return ms <= 0 ? '0 ms' : `${ms.toFixed(2)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 90) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return seconds < 172800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86400)} days`;
}

// "4:59" until the end of a drill.
export function countdownOf(ms) {
  const seconds = Math.max(0, Math.ceil(ms / 1000));
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}

const two = (value) => String(value).padStart(2, '0');
export function clockOf(ms, withSeconds = false) {
  const time = new Date(ms);
  return `${two(time.getHours())}:${two(time.getMinutes())}${withSeconds ? `:${two(time.getSeconds())}` : ''}`;
}
// With the day, if that is not today.
export function whenOf(ms, nowMs) {
  if (!(ms > 0)) return '';
  const time = new Date(ms);
  const day =
    time.toDateString() === new Date(nowMs).toDateString()
      ? ''
      : `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())} `;
  return day + clockOf(ms, true);
}
