import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';

const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** Seals values with AES-256-GCM. An envelope is nonce, tag, ciphertext; it opens only under its key and for its own name. */
export class Seal {
  /** Names the key without telling it: the first 16 hexadecimal digits of its hash. */
  readonly keyId: string;
  private readonly key: Buffer;

  /** `key` is 32 bytes in hexadecimal or base64; anything else throws. */
  constructor(key: string) {
    const text = key.trim();
    this.key = /^[0-9a-fA-F]{64}$/.test(text) ? Buffer.from(text, 'hex') : Buffer.from(text, 'base64');
    if (this.key.length !== 32) throw new TypeError('AMBIT_SEALING_KEY must be 32 bytes, in hexadecimal or base64');
    this.keyId = createHash('sha256').update('ambit sealing key').update(this.key).digest('hex').slice(0, 16);
  }

  /** `name` is bound to the envelope: a row moved to another name does not open. */
  close(value: string, name: string): Buffer {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv('aes-256-gcm', this.key, nonce).setAAD(Buffer.from(name, 'utf8'));
    const sealed = Buffer.concat([cipher.update(value, 'utf8'), cipher.final()]);
    return Buffer.concat([nonce, cipher.getAuthTag(), sealed]);
  }

  /** Throws when the envelope was not made with this key for this name. */
  open(envelope: Uint8Array, name: string): string {
    const bytes = Buffer.from(envelope);
    const decipher = createDecipheriv('aes-256-gcm', this.key, bytes.subarray(0, NONCE_BYTES))
      .setAAD(Buffer.from(name, 'utf8'))
      .setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
    return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()]).toString('utf8');
  }
}
