import { Fault, refusals } from '@ambit/contracts';

const HELD_MS = 60_000;
const OPERATIONS_MAX = 8;
const BYTES_MAX = 16 * 1024 * 1024;

interface Held {
  readonly files: Map<string, Buffer[]>;
  bytes: number;
  readonly timer: NodeJS.Timeout;
}

/** Files that calls will need, by their digests, until each call takes its own: for a minute, and of a few calls at a time. */
export class Staged {
  readonly #held = new Map<string, Held>();

  /** Adds the next part of a file; a part that is there already is taken once. Answers how much of the file there is. */
  add({ operationId, digest, offset, data }: { operationId: string; digest: string; offset: number; data: string }): number {
    const held = this.#held.get(operationId) ?? this.#hold(operationId);
    const parts = held.files.get(digest) ?? [];
    const have = parts.reduce((sum, part) => sum + part.length, 0);
    const bytes = Buffer.from(data, 'base64');
    if (offset + bytes.length <= have && offset < Math.max(1, have)) return have;
    if (offset !== have) throw failed(`a file goes on at byte ${have}, not at ${offset}`);
    if (held.bytes + bytes.length > BYTES_MAX) throw failed(`the files of a call are larger than ${BYTES_MAX} bytes`);
    held.bytes += bytes.length;
    held.files.set(digest, [...parts, bytes]);
    return have + bytes.length;
  }

  /** The files of a call, which are kept no longer. */
  take(operationId: string): ReadonlyMap<string, Buffer> {
    const held = this.#held.get(operationId);
    clearTimeout(held?.timer);
    this.#held.delete(operationId);
    return new Map([...(held?.files ?? [])].map(([digest, parts]) => [digest, Buffer.concat(parts)]));
  }

  clear(): void {
    for (const operationId of this.#held.keys()) this.take(operationId);
  }

  #hold(operationId: string): Held {
    if (this.#held.size >= OPERATIONS_MAX) throw failed('files of too many calls wait on this worker');
    const timer = setTimeout(() => this.take(operationId), HELD_MS);
    timer.unref();
    const held: Held = { files: new Map(), bytes: 0, timer };
    this.#held.set(operationId, held);
    return held;
  }
}

function failed(reason: string): Fault {
  return new Fault('TOOL_FAILED', refusals.TOOL_FAILED, { reason });
}
