/** Keeps the values used last, up to a number of them. */
export class Lru<V> {
  readonly #values = new Map<string, V>();

  constructor(private readonly max: number) {}

  get(key: string): V | undefined {
    const value = this.#values.get(key);
    if (value === undefined) return undefined;
    this.#values.delete(key);
    this.#values.set(key, value);
    return value;
  }

  clear(): void {
    this.#values.clear();
  }

  set(key: string, value: V): void {
    this.#values.delete(key);
    this.#values.set(key, value);
    for (const oldest of this.#values.keys()) {
      if (this.#values.size <= this.max) return;
      this.#values.delete(oldest);
    }
  }
}
