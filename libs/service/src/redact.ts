const SECRET = /secret|token|password|passphrase|authorization|credential|cookie|api[-_]?key|private[-_]?key|\bjwt\b|\bseed\b/i;
const MAX_DEPTH = 6;

/** Copies what goes into a log line, with the values of secret-looking names blotted out. Errors are left to their serializer. */
export function redact(value: unknown, depth = 0): unknown {
  if (typeof value === 'bigint') return String(value);
  if (typeof value !== 'object' || value === null || value instanceof Error || value instanceof Date) return value;
  if (depth >= MAX_DEPTH) return '[deeper]';
  if (Array.isArray(value)) return value.map((item) => redact(item, depth + 1));
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name,
      SECRET.test(name) && member !== undefined && member !== null ? '[redacted]' : redact(member, depth + 1),
    ]),
  );
}
