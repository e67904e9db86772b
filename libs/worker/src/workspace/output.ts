import { StringDecoder } from 'node:string_decoder';

/** What a command wrote, within bounds: its beginning, or of one that runs on its end. */
export class Output {
  readonly #chunks: Buffer[] = [];
  #kept = 0;
  /** Bytes written in all. */
  total = 0;

  constructor(
    private readonly maximum: number,
    private readonly keeps: 'beginning' | 'end',
  ) {}

  push(chunk: Buffer): void {
    this.total += chunk.length;
    if (this.keeps === 'beginning') {
      const room = this.maximum - this.#kept;
      if (room <= 0) return;
      // A slice of a pooled buffer would hold the whole of it.
      const kept = Buffer.from(chunk.subarray(0, room));
      this.#chunks.push(kept);
      this.#kept += kept.length;
      return;
    }
    this.#chunks.push(Buffer.from(chunk));
    this.#kept += chunk.length;
    for (let first = this.#chunks[0]; first !== undefined && this.#kept - first.length >= this.maximum; first = this.#chunks[0]) {
      this.#chunks.shift();
      this.#kept -= first.length;
    }
  }

  /** Bytes that were not kept. */
  get lost(): number {
    return this.total - this.#kept;
  }

  text(): string {
    return Buffer.concat(this.#chunks).toString('utf8');
  }

  /** The end of it, at most so many bytes, of whole characters. */
  tail(bytes: number): string {
    const all = Buffer.concat(this.#chunks);
    const start = Math.max(0, all.length - bytes);
    let first = start;
    // A byte that goes on with a character is none's beginning.
    while (first > 0 && first < all.length && first < start + 4 && ((all[first] ?? 0) & 0xc0) === 0x80) first += 1;
    return new StringDecoder('utf8').write(all.subarray(first));
  }

  /** Text from a byte of all that was written on, at most so many bytes, and the byte that follows it. */
  from(offset: number, length: number): { readonly text: string; readonly next: number } {
    const first = this.keeps === 'end' ? this.lost : 0;
    const start = Math.min(Math.max(offset, first), first + this.#kept);
    const part = Buffer.concat(this.#chunks).subarray(start - first, start - first + length);
    return { text: part.toString('utf8'), next: start + part.length };
  }
}
