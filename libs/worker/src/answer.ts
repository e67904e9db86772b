import { Fault, HEADER, platformFaults, type Output, type Parsed, type Returns, type Rpc } from '@ambit/contracts';
import { headers, type Msg, type NatsConnection } from '@nats-io/nats-core';

/**
 * Whether a message is a question of the platform's. Workers share an account, and a server hands an answer to whatever subject the asker named:
 * what is no question has no inbox to answer to.
 */
function isQuestion({ reply = '' }: Pick<Msg, 'reply'>): boolean {
  return reply.startsWith('_INBOX.') || reply.startsWith('_R_.');
}

/** What a signal of the platform's says: one wants no answer, is none, and belongs to a trace. Undefined for every other message, and for text that is no JSON. */
export function signalOf(message: Pick<Msg, 'reply' | 'headers'> & { json(): unknown }): unknown {
  const { reply = '', headers: sent } = message;
  const isSignal = reply === '' && sent?.has(HEADER.traceparent) === true && !sent.has(HEADER.errorCode);
  return isSignal ? jsonOf(message) : undefined;
}

/** The JSON of a message; undefined where it is none. */
export function jsonOf(message: { json(): unknown }): unknown {
  try {
    return message.json();
  } catch {
    return undefined;
  }
}

/** Answers one contract on one subject as every service does: plain JSON, ADR-32 headers on a fault, nothing told of an unknown error. */
export function answerOver<C extends Rpc>(
  connection: NatsConnection,
  contract: C,
  server: {
    readonly subject: string;
    /** `remainingMs`: how long the asker still waits. */
    readonly handle: (input: Parsed<C>, remainingMs: number) => Promise<Returns<C>>;
  },
): void {
  connection.subscribe(server.subject, {
    callback: (_error, message) => void (isQuestion(message) ? respond(message) : undefined),
  });

  async function respond(message: Msg): Promise<void> {
    try {
      const parsed = contract.input.safeParse(message.json());
      if (!parsed.success) {
        const issues = parsed.error.issues.slice(0, 20).map((issue) => ({ path: issue.path.join('.'), message: issue.message }));
        throw new Fault('INVALID_INPUT', platformFaults.INVALID_INPUT, { issues });
      }
      const handled = await server.handle(parsed.data as Parsed<C>, remaining(message, contract.timeoutMs));
      const answer: Output<C> = contract.output.parse(handled) as Output<C>;
      message.respond(JSON.stringify(answer));
    } catch (error) {
      const fault = error instanceof Fault ? error : new Fault('INTERNAL', platformFaults.INTERNAL);
      const header = headers();
      header.set(HEADER.errorCode, String(fault.status));
      header.set(HEADER.error, fault.message);
      message.respond(JSON.stringify(fault.toBody()), { headers: header });
    }
  }
}

function remaining(message: Msg, longest: number): number {
  const said = Number(message.headers?.get(HEADER.timeout));
  return said > 0 ? Math.min(said, longest) : longest;
}
