// Numbers as people read them.

const BYTES = ["B", "KiB", "MiB", "GiB", "TiB"];

export function bytes(value) {
  if (!Number.isFinite(value)) return "–";
  let at = 0;
  while (Math.abs(value) >= 1024 && at < BYTES.length - 1) {
    value /= 1024;
    at += 1;
  }
  return `${short(value)} ${BYTES[at]}`;
}

export function bytesPerSecond(value) {
  return Number.isFinite(value) ? `${bytes(value)}/s` : "–";
}

export function count(value) {
  if (!Number.isFinite(value)) return "–";
  if (Math.abs(value) >= 1e9) return `${short(value / 1e9)} G`;
  if (Math.abs(value) >= 1e6) return `${short(value / 1e6)} M`;
  if (Math.abs(value) >= 1e4) return `${short(value / 1e3)} k`;
  return short(value);
}

export function perSecond(value) {
  return Number.isFinite(value) ? `${count(value)}/s` : "–";
}

export function percent(value) {
  return Number.isFinite(value) ? `${short(100 * value)} %` : "–";
}

export function seconds(value) {
  if (!Number.isFinite(value)) return "–";
  if (value === 0) return "0 s";
  if (value < 1e-6) return `${short(value * 1e9)} ns`;
  if (value < 1e-3) return `${short(value * 1e6)} µs`;
  if (value < 1) return `${short(value * 1e3)} ms`;
  if (value < 120) return `${short(value)} s`;
  if (value < 7200) return `${short(value / 60)} min`;
  if (value < 172800) return `${short(value / 3600)} h`;
  return `${short(value / 86400)} d`;
}

export function exact(value) {
  return Number(value).toLocaleString("en");
}

function short(value) {
  const size = Math.abs(value);
  if (size !== 0 && size < 0.01) return value.toExponential(0);
  if (Number.isInteger(value) || size >= 100) return Math.round(value).toString();
  return value.toFixed(size >= 10 ? 1 : 2);
}
