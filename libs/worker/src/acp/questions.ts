import type { ToolCallUpdate } from '@agentclientprotocol/sdk';
import type { Run } from '../run.js';
import type { Answer } from './options.js';

const PREVIEW_MAX = 8_000;
const TITLE_MAX = 500;

/** What an agent asks a person during one prompt. */
export class Questions {
  readonly #over = new AbortController();
  readonly #open = new Set<Promise<Answer>>();
  #asked = 0;

  constructor(private readonly run: Run) {}

  /** Waits for a person's answer; `cancelled` once nobody waits for it any more. */
  async ask(toolCall: ToolCallUpdate, signal: AbortSignal): Promise<Answer> {
    this.#asked += 1;
    const until = AbortSignal.any([signal, this.run.signal, this.#over.signal]);
    // One call of the agent may ask more than once.
    const key = `${this.#asked} ${toolCall.toolCallId}`.slice(0, 200);
    // A run that has ended has withdrawn what was asked in it.
    const answer = this.run.permission({ ...questionOf(toolCall), key }, until).catch((error: unknown): Answer => {
      if (until.aborted) return 'cancelled';
      throw error;
    });
    this.#open.add(answer);
    return answer.finally(() => this.#open.delete(answer));
  }

  /** Withdraws what is open; resolves when nothing is. */
  async close(): Promise<void> {
    this.#over.abort();
    await Promise.allSettled(this.#open);
  }
}

/** What a person reads of what the agent wants to do. */
function questionOf({ title, kind, rawInput, locations }: ToolCallUpdate) {
  const where = (locations ?? []).map(({ path }) => path);
  const preview = [...where, ...(rawInput === undefined ? [] : [JSON.stringify(rawInput)])].join('\n').slice(0, PREVIEW_MAX);
  return { action: kind ?? 'other', title: (title ?? '').trim().slice(0, TITLE_MAX) || 'something that it has no name for', preview };
}
