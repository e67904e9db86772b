import { Fault, HEADER, subject, type FaultDef, type Keys, type Output, type Rpc, type Input, platformFaults } from '@ambit/contracts';
import { setTimeout as pause } from 'node:timers/promises';
import { createInbox, headers, NoRespondersError, RequestError, TimeoutError, type Msg, type NatsConnection } from '@nats-io/nats-core';

export interface AskOptions {
  readonly keys: Readonly<Record<string, string>>;
  /** Milliseconds that one try may take. @default the contract's */
  readonly timeoutMs?: number;
}

/** Who is away for a moment, because it is being replaced, is asked again for so long: less than a run's lease. */
const PATIENCE_MS = 10_000;
const AGAIN_MS = 250;

/** Asks over NATS and gives back the parsed answer, or throws the {@link Fault} that came. It asks again for a while where nothing was done because nobody could, and what may be asked twice. */
export async function ask<C extends Rpc>(
  connection: NatsConnection,
  contract: C,
  request: { readonly input: Input<C> } & AskOptions,
): Promise<Output<C>> {
  for (const until = performance.now() + PATIENCE_MS; ; await pause(AGAIN_MS)) {
    try {
      return await askOnce(connection, contract, request);
    } catch (error) {
      if (!(error instanceof Fault) || !mayAskAgain(error, contract) || performance.now() > until) throw error;
    }
  }
}

/** Nothing was done, or doing it twice is no harm. */
function mayAskAgain({ code }: Fault, { idempotent }: Rpc): boolean {
  return code === 'UNAVAILABLE' || (code === 'TIMEOUT' && idempotent);
}

async function askOnce<C extends Rpc>(
  connection: NatsConnection,
  contract: C,
  request: { readonly input: Input<C> } & AskOptions,
): Promise<Output<C>> {
  const timeout = request.timeoutMs ?? contract.timeoutMs;
  const to = subject(contract, request.keys as Keys<string>);
  try {
    return read(contract, await connection.request(to, JSON.stringify(request.input), { timeout, headers: deadline(timeout) }));
  } catch (error) {
    throw asFault(error);
  }
}

/** A request that can be sent again while the first answer is still awaited; whichever answer comes first counts. */
export class RepeatableRequest<C extends Rpc> {
  readonly answer: Promise<Output<C>>;
  private readonly inbox: string;
  private readonly close: () => void;
  private again: NodeJS.Timeout | undefined;
  /** Since when nobody was there, without a word of somebody meanwhile. */
  private awaySince: number | undefined;

  constructor(
    private readonly connection: NatsConnection,
    private readonly contract: C,
    private readonly request: { readonly input: Input<C> } & AskOptions & { readonly inboxPrefix: string },
  ) {
    this.inbox = createInbox(request.inboxPrefix);
    const subscription = connection.subscribe(this.inbox);
    const timeoutMs = request.timeoutMs ?? contract.timeoutMs;
    const timer = setTimeout(() => subscription.unsubscribe(), timeoutMs);
    this.close = () => {
      clearTimeout(timer);
      clearTimeout(this.again);
      subscription.unsubscribe();
    };
    this.answer = this.first(subscription).finally(this.close);
    this.answer.catch(() => undefined); // the caller awaits it too; a caller that left must not crash the process
    this.send();
  }

  send(): void {
    const to = subject(this.contract, this.request.keys as Keys<string>);
    this.connection.publish(to, JSON.stringify(this.request.input), {
      reply: this.inbox,
      headers: deadline(this.request.timeoutMs ?? this.contract.timeoutMs),
    });
  }

  /** Somebody works on it: who goes away after that is waited for anew. */
  heard(): void {
    this.awaySince = undefined;
  }

  stop(): void {
    this.close();
  }

  private async first(messages: AsyncIterable<Msg>): Promise<Output<C>> {
    for await (const message of messages) {
      try {
        if (message.headers?.code === 503) throw new Fault('UNAVAILABLE', platformFaults.UNAVAILABLE);
        return read(this.contract, message);
      } catch (error) {
        this.awaySince ??= performance.now();
        if (!(error instanceof Fault) || error.code !== 'UNAVAILABLE' || performance.now() - this.awaySince > PATIENCE_MS) throw error;
        clearTimeout(this.again);
        this.again = setTimeout(() => this.send(), AGAIN_MS);
      }
    }
    throw new Fault('TIMEOUT', platformFaults.TIMEOUT);
  }
}

function deadline(timeoutMs: number) {
  const header = headers();
  header.set(HEADER.timeout, String(Math.floor(timeoutMs)));
  return header;
}

function read<C extends Rpc>(contract: C, message: Msg): Output<C> {
  const body: unknown = message.data.length === 0 ? {} : message.json();
  const status = message.headers?.get(HEADER.errorCode);
  if (status !== undefined && status !== '') throw decodeFault(contract, Number(status), body);
  return contract.output.parse(body) as Output<C>;
}

function decodeFault(contract: Rpc, status: number, body: unknown): Fault {
  const { code, message, data } =
    typeof body === 'object' && body !== null ? (body as { code?: unknown; message?: unknown; data?: unknown }) : {};
  const name = typeof code === 'string' ? code : 'INTERNAL';
  const known: Readonly<Record<string, FaultDef>> = { ...platformFaults, ...contract.errors };
  const def = Object.hasOwn(known, name) ? known[name] : undefined;
  return new Fault(
    name,
    def ?? { status, retry: 'never', message: 'The platform answered with a fault this worker does not know' },
    data,
    typeof message === 'string' ? message : undefined,
  );
}

function asFault(error: unknown): unknown {
  if (error instanceof Fault) return error;
  const cause = error instanceof RequestError ? (error.cause ?? error) : error;
  if (cause instanceof NoRespondersError || (error instanceof RequestError && error.isNoResponders()))
    return new Fault('UNAVAILABLE', platformFaults.UNAVAILABLE);
  if (cause instanceof TimeoutError) return new Fault('TIMEOUT', platformFaults.TIMEOUT);
  return error;
}
