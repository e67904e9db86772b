const UNITS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** Milliseconds of `45s`, `30m`, `24h` or `7d`; null where the text is none of these. */
export function parseDuration(text: string): number | null {
  const match = /^([0-9]{1,9})(s|m|h|d)$/.exec(text);
  if (match === null) return null;
  const unit = match[2] === 's' || match[2] === 'm' || match[2] === 'h' ? match[2] : 'd';
  return Number(match[1]) * UNITS[unit];
}

/** The shortest text that {@link parseDuration} reads as that many milliseconds, rounded up to whole seconds. */
export function formatDuration(milliseconds: number): string {
  const seconds = Math.ceil(milliseconds / 1_000) * 1_000;
  for (const unit of ['d', 'h', 'm'] as const) {
    if (seconds > 0 && seconds % UNITS[unit] === 0) return `${seconds / UNITS[unit]}${unit}`;
  }
  return `${seconds / 1_000}s`;
}
