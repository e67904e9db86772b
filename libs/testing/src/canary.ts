import { randomBytes } from 'node:crypto';

const MARK = 'ambit-canary';
let planted = 0;

/** A value for a secret field of a test that can be told anywhere: `ambit-canary-<name>-<random>`; the name in lower case and digits. */
export function canary(name: string): string {
  if (!/^[a-z0-9]+$/.test(name)) throw new TypeError(`"${name}" is no name of a canary: use lower-case letters and digits`);
  planted += 1;
  return `${MARK}-${name}-${randomBytes(12).toString('hex')}`;
}

/** Whether this test file has made one, so that looking for it is worth the time. */
export function hasCanary(): boolean {
  return planted > 0;
}

// Base64 of the mark at each of the three positions it can have in a triple of bytes, without the characters its neighbours share.
const ENCODED = [0, 1, 2].map((shift) =>
  Buffer.from(`${'x'.repeat(shift)}${MARK}`)
    .toString('base64url')
    .slice(shift === 0 ? 0 : shift + 1, -2),
);
const FOUND = new RegExp(`${MARK}-[a-z0-9]+-[0-9a-f]{24}|${Buffer.from(MARK).toString('hex')}|${ENCODED.join('|')}`, 'g');

/** The canaries that stand in a text, plain, in hex or in base64; each once. */
export function canariesIn(text: string): string[] {
  return [...new Set(text.match(FOUND) ?? [])];
}
