/** What may be seen of a line that was too long: its ends, which say what it answered. */
export interface OversizedLine {
  readonly head: string;
  readonly tail: string;
  readonly bytes: number;
}

export interface LineReaderOptions {
  readonly limitBytes: number;
  readonly onLine: (line: string) => void;
  /** A line over the limit ended; nothing of its middle was kept. */
  readonly onOversized: (line: OversizedLine) => void;
  /** A line is still going on at four times the limit: whoever writes it does not mean to end it. */
  readonly onFlood: () => void;
}

const END_BYTES = 512;
const NEWLINE = 10;

/** Cuts a byte stream into lines without copying what it holds more than once, and holds no more than its limit. */
export class LineReader {
  private chunks: Buffer[] = [];
  private held = 0;
  private skipped = 0;
  private head = '';
  private tail = Buffer.alloc(0);

  constructor(private readonly options: LineReaderOptions) {}

  push(chunk: Buffer): void {
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, from)) {
      this.take(chunk.subarray(from, end));
      this.endLine();
      from = end + 1;
    }
    if (from < chunk.length) this.take(chunk.subarray(from));
  }

  private take(part: Buffer): void {
    if (this.skipped === 0 && this.held + part.length <= this.options.limitBytes) {
      this.chunks.push(part);
      this.held += part.length;
      return;
    }
    if (this.skipped === 0) {
      const held = Buffer.concat([...this.chunks, part]);
      this.head = held.subarray(0, END_BYTES).toString('utf8');
      this.skipped = this.held;
      this.chunks = [];
      this.held = 0;
    }
    this.skipped += part.length;
    this.tail = Buffer.concat([this.tail, part.subarray(-END_BYTES)]).subarray(-END_BYTES);
    if (this.skipped > 4 * this.options.limitBytes) this.options.onFlood();
  }

  private endLine(): void {
    const { chunks, skipped, head, tail } = this;
    this.chunks = [];
    this.held = 0;
    this.skipped = 0;
    this.tail = Buffer.alloc(0);
    if (skipped > 0) return this.options.onOversized({ head, tail: tail.toString('utf8'), bytes: skipped });
    const [only] = chunks;
    const line = chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks);
    if (line.length > 0) this.options.onLine(line.toString('utf8'));
  }
}
