const SAFE = /^[A-Za-z0-9_-]$/;
// Ids and slugs, nearly all keys there are, need no escaping: one look instead of one a byte, on the path of every call.
const ALL_SAFE = /^[A-Za-z0-9_-]+$/;

/**
 * Escapes any string into one NATS subject token and KV key token: UTF-8 bytes outside `[A-Za-z0-9_-]` become `=XX`.
 * Injective, so two keys never meet in one subject. `plugin:com.acme` is `plugin=3Acom=2Eacme`.
 */
export function toToken(value: string): string {
  if (value.length === 0) throw new TypeError('a subject token may not be empty');
  if (ALL_SAFE.test(value)) return value;
  let token = '';
  for (const byte of new TextEncoder().encode(value)) {
    const character = String.fromCharCode(byte);
    token += byte < 128 && SAFE.test(character) ? character : `=${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }
  return token;
}

/** Reverses {@link toToken}; throws a TypeError on a token it could not have made. */
export function fromToken(token: string): string {
  if (ALL_SAFE.test(token)) return token;
  const bytes: number[] = [];
  for (let index = 0; index < token.length; index++) {
    const character = token.charAt(index);
    if (SAFE.test(character)) {
      bytes.push(character.charCodeAt(0));
      continue;
    }
    const hex = token.slice(index + 1, index + 3);
    if (character !== '=' || !/^[0-9A-F]{2}$/.test(hex)) throw new TypeError('not an escaped subject token');
    bytes.push(Number.parseInt(hex, 16));
    index += 2;
  }
  return new TextDecoder('utf-8', { fatal: true }).decode(new Uint8Array(bytes));
}
