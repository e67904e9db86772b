/** A map of at most `max` entries: once it is full, each new one takes the place of what was not read or written for longest. */
export class BoundedMap<K, V> {
  readonly #entries = new Map<K, V>();

  constructor(private readonly max: number) {}

  get size(): number {
    return this.#entries.size;
  }

  get(key: K): V | undefined {
    const value = this.#entries.get(key);
    if (value === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, value);
    return value;
  }

  set(key: K, value: V): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    if (this.#entries.size <= this.max) return;
    for (const oldest of this.#entries.keys()) {
      this.#entries.delete(oldest);
      return;
    }
  }

  delete(key: K): void {
    this.#entries.delete(key);
  }

  has(key: K): boolean {
    return this.#entries.has(key);
  }

  values(): Iterable<V> {
    return this.#entries.values();
  }

  entries(): Iterable<[K, V]> {
    return this.#entries.entries();
  }

  clear(): void {
    this.#entries.clear();
  }
}
