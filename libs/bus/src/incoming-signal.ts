import { HEADER, keysOf, type KeysOf } from '@ambit/contracts';
import type { Msg } from '@nats-io/nats-core';
import { continueTrace, traceIdOf } from './trace.js';

/** What a listener knows of a signal beside its payload. */
export interface IncomingSignal<C extends { readonly subject: string } = { readonly subject: string }> {
  readonly keys: KeysOf<C>;
  readonly traceparent: string;
  readonly traceId: string;
}

/** Reads a signal's keys and trace; throws a TypeError when the subject is not the contract's. */
export function incomingSignal<C extends { readonly subject: string }>(
  contract: C,
  message: Pick<Msg, 'subject' | 'headers'>,
): IncomingSignal<C> {
  const traceparent = continueTrace(message.headers?.get(HEADER.traceparent));
  return { keys: keysOf<C['subject']>(contract, message.subject), traceparent, traceId: traceIdOf(traceparent) };
}
