import type { z } from 'zod';
import type { Schema } from './schema.js';
import { Fault, type FaultDef, type FaultMap } from './fault.js';

/** `evt.….published.{skillId}` has the one key `skillId`. */
export type Keys<S extends string> = S extends `${string}{${infer P}}${infer Rest}`
  ? { readonly [K in P | keyof Keys<Rest>]: string }
  : Readonly<Record<never, string>>;

/** Who may publish a request: services only, or also the workers' NATS account. */
export type Audience = 'service' | 'worker';

export interface Rpc<S extends string = string, I extends Schema = Schema, O extends Schema = Schema, E extends FaultMap = FaultMap> {
  readonly kind: 'rpc';
  readonly subject: S;
  readonly owner: string;
  readonly summary: string;
  readonly input: I;
  readonly output: O;
  readonly errors: E;
  readonly audience: Audience;
  /** Repeating it has the effect of doing it once, so the bus may send it again after a time-out. */
  readonly idempotent: boolean;
  readonly timeoutMs: number;
}

interface Message<K extends string, S extends string, P extends Schema> {
  readonly kind: K;
  readonly subject: S;
  readonly owner: string;
  readonly summary: string;
  readonly payload: P;
}
/** A fact, stored in AMBIT_EVENTS; a hint to re-read, never the only carrier of truth. */
export type EventContract<S extends string = string, P extends Schema = Schema> = Message<'event', S, P>;
/** Work for exactly one taker, on a JetStream work queue. */
export type JobContract<S extends string = string, P extends Schema = Schema> = Message<'job', S, P> & { readonly stream: string };
/** A signal to whoever listens now; never stored. */
export type SignalContract<S extends string = string, P extends Schema = Schema> = Message<'signal', S, P> & {
  readonly audience: Audience;
};

export type Contract = Rpc | EventContract | JobContract | SignalContract;

export type Input<C extends { readonly input: Schema }> = z.input<C['input']>;
export type Parsed<C extends { readonly input: Schema }> = z.output<C['input']>;
export type Returns<C extends { readonly output: Schema }> = z.input<C['output']>;
export type Output<C extends { readonly output: Schema }> = z.output<C['output']>;
export type Payload<C extends { readonly payload: Schema }> = z.input<C['payload']>;
export type KeysOf<C extends { readonly subject: string }> = Keys<C['subject']>;

const SUBJECT = /^ambit\.(rpc|evt|job|ctl)\.([a-z0-9-]+)\.v[1-9][0-9]*\.[a-z0-9-]+\.[a-z0-9-]+(\.\{[A-Za-z]+\})*$/;

function ownerOf(subject: string, kind: string): string {
  const match = SUBJECT.exec(subject);
  if (match?.[1] !== kind || match[2] === undefined)
    throw new TypeError(`"${subject}" is not ambit.${kind}.<owner>.v<n>.<noun>.<verb>[.{key}]`);
  return match[2];
}

export interface RpcDef<I extends Schema, O extends Schema, E extends FaultMap> {
  readonly summary: string;
  readonly input: I;
  readonly output: O;
  readonly errors?: E;
  /** @default 'service' */
  readonly audience?: Audience;
  /** @default false */
  readonly idempotent?: boolean;
  /** @default 5000 */
  readonly timeoutMs?: number;
}

/** Declares a question and its answer. Types, validation, documents and NATS permissions are read off the value. */
export function rpc<const S extends string, I extends Schema, O extends Schema, const E extends FaultMap = {}>(
  subject: S,
  def: RpcDef<I, O, E>,
): Rpc<S, I, O, E> {
  return {
    kind: 'rpc',
    subject,
    owner: ownerOf(subject, 'rpc'),
    summary: def.summary,
    input: def.input,
    output: def.output,
    errors: def.errors ?? ({} as E),
    audience: def.audience ?? 'service',
    idempotent: def.idempotent ?? false,
    timeoutMs: def.timeoutMs ?? 5_000,
  };
}

export function event<const S extends string, P extends Schema>(
  subject: S,
  def: { readonly summary: string; readonly payload: P },
): EventContract<S, P> {
  return { kind: 'event', subject, owner: ownerOf(subject, 'evt'), ...def };
}

export function job<const S extends string, P extends Schema>(
  subject: S,
  def: { readonly summary: string; readonly payload: P; readonly stream: string },
): JobContract<S, P> {
  return { kind: 'job', subject, owner: ownerOf(subject, 'job'), ...def };
}

export function signal<const S extends string, P extends Schema>(
  subject: S,
  def: { readonly summary: string; readonly payload: P; readonly audience?: Audience },
): SignalContract<S, P> {
  return { kind: 'signal', subject, owner: ownerOf(subject, 'ctl'), audience: 'service', ...def };
}

type CodeOf<C extends { readonly errors: FaultMap }> = keyof C['errors'] & string;
type DataOf<D extends FaultDef | undefined> = D extends { readonly data: infer T extends Schema }
  ? [data: z.input<T>, message?: string]
  : [data?: undefined, message?: string];

/** Makes a fault that this contract declares, with the data it declares. `message` replaces the declared sentence. */
export function fault<C extends { readonly errors: FaultMap }, const K extends CodeOf<C>>(
  contract: C,
  code: K,
  ...[data, message]: DataOf<C['errors'][K]>
): Fault {
  const def = contract.errors[code];
  if (def === undefined) throw new TypeError(`the contract does not declare ${code}`);
  return new Fault(code, def, data, message);
}
