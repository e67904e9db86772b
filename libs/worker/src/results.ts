import { createHash } from 'node:crypto';
import { Fault, worker, type Output } from '@ambit/contracts';

type Called = Output<typeof worker.callTool>;
type Page = Output<typeof worker.resultPage>;

/** What fits into one message beside everything else. */
const INLINE_BYTES = 256 * 1024;
const PAGE_BYTES = 256 * 1024;
const HELD_MS = 60_000;
const HELD_MAX = 1_000;
const HELD_BYTES_MAX = 128 * 1024 * 1024;

interface Held {
  readonly granted: boolean;
  readonly called: Promise<Called>;
  /** It answered that it asks first, so nothing was done. */
  hasAsked: boolean;
  whole: Buffer | undefined;
  timer: NodeJS.Timeout | undefined;
}

/** The calls of a worker's tools: each operation runs once however often it comes, and large results wait here to be fetched. */
export class Results {
  readonly #held = new Map<string, Held>();

  /** Joins the operation where it is known, else begins it; one that asked is begun once more when it was granted. */
  once(
    { operationId, granted }: { readonly operationId: string; readonly granted: boolean },
    begin: () => Promise<Called>,
  ): Promise<Called> {
    const known = this.#held.get(operationId);
    if (known !== undefined && (known.granted || !granted || !known.hasAsked)) return known.called;
    clearTimeout(known?.timer);
    this.#makeRoom();
    const held: Held = {
      granted,
      called: begin().then((called) => this.#fit(called, held)),
      hasAsked: false,
      whole: undefined,
      timer: undefined,
    };
    this.#held.set(operationId, held);
    void held.called
      .catch(() => undefined)
      .finally(() => {
        if (this.#held.get(operationId) !== held) return;
        held.timer = setTimeout(() => this.#held.delete(operationId), HELD_MS);
        held.timer.unref();
      });
    return held.called;
  }

  page(operationId: string, offset: number): Page {
    const whole = this.#held.get(operationId)?.whole;
    if (whole === undefined) throw new Fault('RESULT_GONE', worker.resultPage.errors.RESULT_GONE);
    const data = whole.subarray(offset, offset + PAGE_BYTES);
    const next = offset + data.length;
    return { data: data.toString('base64'), next: next < whole.length ? next : null };
  }

  clear(): void {
    for (const { timer } of this.#held.values()) clearTimeout(timer);
    this.#held.clear();
  }

  #fit(called: Called, held: Held): Called {
    const { content, structuredContent, isError } = called;
    held.hasAsked = called.asks !== undefined;
    if (held.hasAsked) return called;
    const whole = Buffer.from(JSON.stringify({ content, structuredContent, isError }));
    if (whole.length <= INLINE_BYTES) return called;
    held.whole = whole;
    return { content: [], isError, large: { digest: createHash('sha256').update(whole).digest('hex'), bytes: whole.length } };
  }

  /** Oldest first: those that have ended, and of results only what there is room for. */
  #makeRoom(): void {
    let bytes = [...this.#held.values()].reduce((sum, { whole }) => sum + (whole?.length ?? 0), 0);
    for (const [operationId, { timer, whole }] of this.#held) {
      if (this.#held.size < HELD_MAX && bytes < HELD_BYTES_MAX) return;
      if (timer === undefined) continue;
      clearTimeout(timer);
      bytes -= whole?.length ?? 0;
      this.#held.delete(operationId);
    }
  }
}
