import type { EventContract, JobContract, KeysOf, Payload } from './contract.js';
import { HEADER } from './headers.js';
import { subject } from './subject.js';

/** A message that a stream keeps: what the outbox holds and what the bus publishes. */
export interface StoredMessage {
  readonly subject: string;
  /** JSON text. */
  readonly payload: string;
  readonly headers: Readonly<Record<string, string>>;
  /** `Nats-Msg-Id`: the stream drops a second message with it. */
  readonly messageId: string;
}

export interface StoredOptions<C extends { readonly subject: string }> {
  readonly keys: KeysOf<C>;
  readonly id: string;
  readonly time: Date;
  readonly traceparent?: string | undefined;
}

/** Shapes an event with CloudEvents attributes in `ce-*` headers. Throws a ZodError when the payload is not the contract's. */
export function eventMessage<C extends EventContract>(contract: C, payload: Payload<C>, options: StoredOptions<C>): StoredMessage {
  const message = stored(contract, payload, options);
  return {
    ...message,
    headers: {
      ...message.headers,
      'ce-specversion': '1.0',
      'ce-id': options.id,
      'ce-source': `/ambit/${contract.owner}`,
      'ce-type': contract.subject.replace(/\.\{[A-Za-z]+\}/g, ''),
      'ce-time': options.time.toISOString(),
    },
  };
}

/** Shapes a job. Throws a ZodError when the payload is not the contract's. */
export function jobMessage<C extends JobContract>(contract: C, payload: Payload<C>, options: StoredOptions<C>): StoredMessage {
  return stored(contract, payload, options);
}

function stored<C extends EventContract | JobContract>(contract: C, payload: Payload<C>, options: StoredOptions<C>): StoredMessage {
  return {
    subject: subject<C['subject']>(contract, options.keys),
    payload: JSON.stringify(contract.payload.parse(payload)),
    headers: {
      'content-type': 'application/json',
      ...(options.traceparent === undefined ? {} : { [HEADER.traceparent]: options.traceparent }),
    },
    messageId: options.id,
  };
}
