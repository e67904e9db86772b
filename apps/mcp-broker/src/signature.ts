import { createHmac } from 'node:crypto';

const ENCODED = 'whsec_';

/**
 * HMAC-SHA256 of a text in base64, as Standard Webhooks has it: a secret that begins with `whsec_` is a key in base64, any other is the key
 * itself. Undefined where that leaves no key at all, with which anybody could sign.
 */
export function signatureOf(text: string, secret: string): string | undefined {
  const key = secret.startsWith(ENCODED) ? Buffer.from(secret.slice(ENCODED.length), 'base64') : Buffer.from(secret, 'utf8');
  return key.length === 0 ? undefined : createHmac('sha256', key).update(text, 'utf8').digest('base64');
}
