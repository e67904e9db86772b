interface Kept<V> {
  readonly value: V;
  readonly bytes: number;
  usedAt: number;
}

/** A map of values of known sizes in bytes that forgets what was not used for longest once they are more than `maxBytes` together. */
export class ByteCache<V> {
  readonly #kept = new Map<string, Kept<V>>();
  #bytes = 0;

  constructor(private readonly maxBytes: number) {}

  get bytes(): number {
    return this.#bytes;
  }

  /** `now` in milliseconds, here and below. */
  get(key: string, now: number): V | undefined {
    const kept = this.#kept.get(key);
    if (kept === undefined) return undefined;
    this.#kept.delete(key);
    this.#kept.set(key, kept);
    kept.usedAt = now;
    return kept.value;
  }

  /** A value larger than the whole cache is not kept. */
  set(key: string, kept: { readonly value: V; readonly bytes: number }, now: number): void {
    this.delete(key);
    if (kept.bytes > this.maxBytes) return;
    this.#kept.set(key, { ...kept, usedAt: now });
    this.#bytes += kept.bytes;
    for (const oldest of this.#kept.keys()) {
      if (this.#bytes <= this.maxBytes) return;
      this.delete(oldest);
    }
  }

  delete(key: string): void {
    this.#bytes -= this.#kept.get(key)?.bytes ?? 0;
    this.#kept.delete(key);
  }

  /** Forgets what was not used since then. */
  dropUnusedSince(since: number): void {
    for (const [key, { usedAt }] of this.#kept) if (usedAt < since) this.delete(key);
  }
}
