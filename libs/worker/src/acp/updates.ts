import type { SessionNotification, SessionUpdate } from '@agentclientprotocol/sdk';

/** What is kept of what came before its session was known. */
const EARLY_MAX = 1_000;
const CALLS_MAX = 200;
const TITLE_MAX = 300;
/** The tape's room for one message. */
const TEXT_MAX = 200_000;

/** A call that the agent made with a tool of its own, as it told of it. */
export interface OwnCall {
  readonly id: string;
  readonly title: string;
  readonly kind: string | null;
  readonly status: string | null;
}

/** What an agent told during one prompt: nothing of before it, and nothing that comes after its end. */
export class Updates {
  #early: SessionNotification[] = [];
  #sessionId: string | undefined;
  #isOver = false;
  #text = '';
  #lost = 0;
  readonly #calls = new Map<string, OwnCall>();

  constructor(private readonly onText: (text: string) => void) {}

  /** Takes an update; before its session is known it is kept until it is. */
  take(notification: SessionNotification): void {
    if (this.#isOver) return;
    if (this.#sessionId === undefined) {
      if (this.#early.length < EARLY_MAX) this.#early.push(notification);
      return;
    }
    if (notification.sessionId === this.#sessionId) this.#apply(notification.update);
  }

  /** The session is known: what came early of it counts; of one that was loaded again it tells of former prompts. */
  opened(sessionId: string, isLoaded: boolean): void {
    const early = isLoaded ? [] : this.#early;
    this.#early = [];
    this.#sessionId = sessionId;
    for (const notification of early) this.take(notification);
  }

  /** Whatever comes now belongs to no prompt. */
  end(): void {
    this.#isOver = true;
  }

  get text(): string {
    return this.#lost === 0 ? this.#text : `${this.#text}\n[${this.#lost} more characters were not kept]`;
  }
  get calls(): readonly OwnCall[] {
    return [...this.#calls.values()];
  }

  #apply(update: SessionUpdate): void {
    if (update.sessionUpdate === 'agent_message_chunk') {
      if (update.content.type === 'text') this.#say(update.content.text);
      return;
    }
    if (update.sessionUpdate !== 'tool_call' && update.sessionUpdate !== 'tool_call_update') return;
    const known = this.#calls.get(update.toolCallId);
    if (known === undefined && this.#calls.size >= CALLS_MAX) return;
    this.#calls.set(update.toolCallId, {
      id: update.toolCallId.slice(0, TITLE_MAX),
      title: (update.title ?? known?.title ?? '').slice(0, TITLE_MAX),
      kind: update.kind ?? known?.kind ?? null,
      status: update.status ?? known?.status ?? null,
    });
  }

  #say(text: string): void {
    const room = TEXT_MAX - this.#text.length;
    this.#text += text.slice(0, room);
    this.#lost += Math.max(0, text.length - room);
    this.onText(text);
  }
}
