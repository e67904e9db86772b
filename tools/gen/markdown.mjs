export const HEADER = '<!-- Made by `npm run gen` from libs/contracts. Change the contract, not this file. -->\n';

/** A Markdown table; cells may hold anything, pipes and line breaks are made harmless. */
export function table(head, rows) {
  const cell = (value) => String(value).replaceAll('|', '\\|').replaceAll('\n', ' ');
  return [head, head.map(() => '---'), ...rows].map((row) => `| ${row.map(cell).join(' | ')} |`).join('\n') + '\n';
}

/** `8 h`, `30 min`, `5 s`, `500 ms`. */
export function duration(milliseconds) {
  for (const [unit, size] of [
    ['d', 86_400_000],
    ['h', 3_600_000],
    ['min', 60_000],
    ['s', 1_000],
  ]) {
    if (milliseconds >= size && milliseconds % size === 0) return `${milliseconds / size} ${unit}`;
  }
  return `${milliseconds} ms`;
}

/** `512 KiB`, `1 GiB`. */
export function bytes(count) {
  for (const [unit, size] of [
    ['GiB', 1024 ** 3],
    ['MiB', 1024 ** 2],
    ['KiB', 1024],
  ]) {
    if (count >= size && count % size === 0) return `${count / size} ${unit}`;
  }
  return `${count} B`;
}
