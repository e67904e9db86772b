import { CONFIG } from '@ambit/service';
import { Inject, Injectable } from '@nestjs/common';
import { readFileSync } from 'node:fs';
import type { BrokerConfig } from './config.js';
import { Seal } from './seal.js';

/** A sealed value as it is stored: the envelope, and which key opens it. */
export interface Sealed {
  readonly sealed: Uint8Array<ArrayBuffer>;
  readonly keyId: string;
}

/** The keys of this process: the first one closes, all of them open. */
@Injectable()
export class Sealer {
  private readonly seals: ReadonlyMap<string, Seal>;
  private readonly current: Seal | undefined;

  constructor(@Inject(CONFIG) config: BrokerConfig) {
    const seals = keysOf(config).map((key) => new Seal(key));
    this.current = seals[0];
    this.seals = new Map(seals.map((seal) => [seal.keyId, seal]));
  }

  /** The key that closes; undefined where none is configured, and nothing can be stored. */
  get keyId(): string | undefined {
    return this.current?.keyId;
  }
  /** Keys that were replaced, and open still. */
  get oldKeyIds(): string[] {
    return [...this.seals.keys()].filter((keyId) => keyId !== this.keyId);
  }
  /** Whether an envelope of this key opens here. */
  has(keyId: string | null): boolean {
    return keyId !== null && this.seals.has(keyId);
  }

  /** Throws where no key is configured. */
  close(value: string, name: string): Sealed {
    if (this.current === undefined) throw new Error('no sealing key is configured (AMBIT_SEALING_KEY)');
    return { sealed: new Uint8Array(this.current.close(value, name)), keyId: this.current.keyId };
  }

  /** Throws where the key is not here, or the envelope is not of this name. */
  open({ sealed, keyId }: { readonly sealed: Uint8Array; readonly keyId: string | null }, name: string): string {
    const seal = keyId === null ? undefined : this.seals.get(keyId);
    if (seal === undefined) throw new Error(`the key ${keyId ?? 'none'} is not one of this process`);
    return seal.open(sealed, name);
  }
}

/** The newest first: from the variable, or the lines of its file, then the ones that were replaced. */
function keysOf(config: BrokerConfig): readonly string[] {
  const file = config.AMBIT_SEALING_KEY_FILE;
  const text = file === undefined ? (config.AMBIT_SEALING_KEY ?? '') : readFileSync(file, 'utf8');
  return [text, config.AMBIT_SEALING_KEYS_OLD ?? ''].flatMap((keys) => keys.split(/[\s,]+/)).filter((key) => key !== '');
}
