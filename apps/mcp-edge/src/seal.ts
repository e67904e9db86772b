import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { CONFIG, LOG, type Logger } from '@ambit/service';
import { Inject, Injectable } from '@nestjs/common';
import type { EdgeConfig } from './config.js';

const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const LONGEST = 4_096;

/** Closes what clients carry for us, with AES-256-GCM: they can neither read nor change it, and any replica opens it. */
@Injectable()
export class Seal {
  readonly #key: Buffer;

  constructor(@Inject(CONFIG) config: Pick<EdgeConfig, 'AMBIT_EDGE_KEY'>, @Inject(LOG) log: Logger) {
    const text = config.AMBIT_EDGE_KEY?.trim();
    if (text === undefined) log.warn({}, 'AMBIT_EDGE_KEY is not set: what clients carry is known to this process alone');
    this.#key = text === undefined ? randomBytes(32) : Buffer.from(text, /^[0-9a-fA-F]{64}$/.test(text) ? 'hex' : 'base64');
    if (this.#key.length !== 32) throw new TypeError('AMBIT_EDGE_KEY must be 32 bytes, in hexadecimal or base64');
  }

  /** `use` is bound to the text: what was closed for one use opens for no other. */
  close(use: string, value: unknown): string {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv('aes-256-gcm', this.#key, nonce).setAAD(Buffer.from(use));
    const sealed = Buffer.concat([cipher.update(JSON.stringify(value), 'utf8'), cipher.final()]);
    return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64url');
  }

  /** Undefined where it was not closed here for this use. */
  open(use: string, text: string): unknown {
    if (text.length > LONGEST || !/^[A-Za-z0-9_-]+$/.test(text)) return undefined;
    const bytes = Buffer.from(text, 'base64url');
    if (bytes.length < NONCE_BYTES + TAG_BYTES) return undefined;
    try {
      const decipher = createDecipheriv('aes-256-gcm', this.#key, bytes.subarray(0, NONCE_BYTES))
        .setAAD(Buffer.from(use))
        .setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
      const opened = Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()]);
      const value: unknown = JSON.parse(opened.toString('utf8'));
      return value;
    } catch {
      return undefined;
    }
  }
}
