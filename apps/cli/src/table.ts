/** A column: its title, and the dotted path of what stands in it. */
export type Column = readonly [title: string, path: string];

/** Rows under titles, as wide as their widest entry. */
export function table(columns: readonly Column[], items: readonly unknown[], bold: (text: string) => string): string {
  const rows = items.map((item) => columns.map(([, path]) => cell(valueAt(item, path))));
  const widths = columns.map(([title], index) => Math.max(title.length, ...rows.map((row) => row[index]?.length ?? 0)));
  const line = (cells: readonly string[]) =>
    cells
      .map((text, index) => text.padEnd(widths[index] ?? 0))
      .join('  ')
      .trimEnd();
  return [bold(line(columns.map(([title]) => title))), ...rows.map(line)].join('\n') + '\n';
}

/** Every field of a thing on a line of its own; what is nested stands below, indented. */
export function fields(thing: unknown, indent = ''): string {
  if (typeof thing !== 'object' || thing === null) return `${indent}${cell(thing)}\n`;
  return Object.entries(thing)
    .map(([name, value]) => {
      const isDeep =
        typeof value === 'object' && value !== null && Object.keys(value).length > 0 && cell(value).length > 100 - indent.length;
      return isDeep ? `${indent}${name}:\n${fields(value, `${indent}  `)}` : `${indent}${name}: ${cell(value)}\n`;
    })
    .join('');
}

const WIDEST = 120;

/** One value on one line. Control characters are shown, never sent to the terminal. */
export function cell(value: unknown): string {
  if (value === null || value === undefined) return '-';
  if (Array.isArray(value) && value.every((entry) => typeof entry !== 'object'))
    return value.length === 0 ? 'none' : printable(value.join(', '));
  return printable(typeof value === 'string' ? value : JSON.stringify(value));
}

/** A text that cannot move the cursor, change colours or hide what it says. */
export function printable(text: string, longest = WIDEST): string {
  const plain = text.replaceAll(/[\p{Cc}\p{Cf}]+/gu, ' ');
  return plain.length > longest ? `${plain.slice(0, longest - 1)}…` : plain;
}

function valueAt(item: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((at, key) => (typeof at === 'object' && at !== null ? Reflect.get(at, key) : undefined), item);
}
