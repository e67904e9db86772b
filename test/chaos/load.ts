import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { http } from '../system/http.js';
import { pick } from './random.js';

export interface LoadOptions {
  /** Of every replica that takes messages, as a service in front of them would know. */
  readonly apiUrls: readonly string[];
  readonly token: string;
  readonly agentId: string;
  /** Tools that count a name. */
  readonly tools: readonly string[];
  readonly random: () => number;
}

/** A message that was taken. */
export interface Taken {
  readonly sessionId: string;
  readonly runId: string;
}

const EVERY_MS = 1_000;
const STEPS = 2;
const CALLS = 3;
const SLOWEST_MS = 150;
const TAKEN_WITHIN_MS = 60_000;
const ANSWERED_MS = 20_000;
const AGAIN_MS = 200;

/** Calls that a message asks for. */
export const CALLS_OF_RUN = STEPS * CALLS;

/** Calls a second, while everybody gets an answer at once. */
export const OFFERED = (CALLS_OF_RUN * 1_000) / EVERY_MS;

/** People who write at their own pace, whatever goes on behind the door: a message a second, each a session with six calls. */
export class Load {
  readonly taken: Taken[] = [];
  readonly untaken: string[] = [];
  readonly #sending = new Set<Promise<void>>();
  readonly #timer: NodeJS.Timeout;
  #count = 0;
  #door = 0;

  constructor(private readonly options: LoadOptions) {
    this.#timer = setInterval(() => {
      const sending: Promise<void> = this.#send(`m${++this.#count}`).finally(() => this.#sending.delete(sending));
      this.#sending.add(sending);
    }, EVERY_MS);
  }

  /** Nobody writes any more; answers when the last message was taken or refused. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all(this.#sending);
  }

  async #send(name: string): Promise<void> {
    const body = { principal: WRITER, agentId: this.options.agentId, sceneId: name, content: this.#script(name) };
    const headers = { 'idempotency-key': randomUUID() };
    let last = '';
    for (const end = performance.now() + TAKEN_WITHIN_MS; performance.now() < end; await pause(AGAIN_MS)) {
      const apiUrl = this.options.apiUrls[this.#door++ % this.options.apiUrls.length] ?? '';
      try {
        const answer = await http({ apiUrl, token: this.options.token }, 'POST /v1/message', {
          body,
          headers,
          signal: AbortSignal.timeout(ANSWERED_MS),
        });
        if (answer.status === 202) {
          this.taken.push({ sessionId: String(answer.body['sessionId']), runId: String(answer.body['runId']) });
          return;
        }
        last = `${answer.status} ${answer.text.slice(0, 200)}`;
        if (answer.status < 500 && answer.status !== 429) break;
      } catch (error) {
        last = String(error);
      }
    }
    this.untaken.push(`${name}: ${last}`);
  }

  /** What the model of the workers reads: two steps of three calls, each with a name of its own. */
  #script(name: string): string {
    const { tools, random } = this.options;
    const call = (at: string): string =>
      `use ${pick(tools, random())} with ${JSON.stringify({ name: at, ms: Math.floor(random() * SLOWEST_MS) })}`;
    return range(STEPS)
      .map((step) =>
        range(CALLS)
          .map((one) => call(`${name}-${step}-${one}`))
          .join('\n'),
      )
      .join('\n\n');
  }
}

const WRITER = { id: 'user:chaos', kind: 'person', issuer: 'local', display: 'Whoever writes' };
const range = (count: number): number[] => Array.from({ length: count }, (_, index) => index);
