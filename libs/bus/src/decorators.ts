import 'reflect-metadata';
import { pattern, type EventContract, type JobContract, type Parsed, type Returns, type Rpc, type SignalContract } from '@ambit/contracts';
import type { Type } from '@nestjs/common';
import { MessagePattern } from '@nestjs/microservices';
import type { z } from 'zod';
import type { Call } from './call.js';
import type { Delivery } from './held-message.js';
import type { IncomingSignal } from './incoming-signal.js';

export interface HearsOptions {
  /** Each replica hears each event from now on, instead of one replica hearing it for all; for caches. @default false */
  readonly everyReplica?: boolean;
  /** Handlers at once in this process; 1 keeps the order. @default 1 */
  readonly concurrency?: number;
  /** @default 5 */
  readonly maxDeliveries?: number;
}

export interface WorksOptions {
  /** @default 8 */
  readonly concurrency?: number;
  /** @default 3 */
  readonly maxDeliveries?: number;
}

/** What a decorator says of a method; read by the bus server when Nest registers it. */
export type Registration =
  | { readonly kind: 'answers'; readonly contract: Rpc }
  | { readonly kind: 'listens'; readonly contract: SignalContract }
  | { readonly kind: 'hears'; readonly contract: EventContract; readonly options: HearsOptions }
  | { readonly kind: 'works'; readonly contract: JobContract; readonly options: WorksOptions };

/** A method decorator that compiles only on a method of this shape. */
type On<F> = <T extends F>(target: object, key: string | symbol, method: TypedPropertyDescriptor<T>) => void;

const HANDLINGS = Symbol('ambit:handlings');

/** Answers a contract's requests with the method below. */
export const Answers = <C extends Rpc>(contract: C): On<(input: Parsed<C>, call: Call<C>) => Promise<Returns<C>> | Returns<C>> =>
  register({ kind: 'answers', contract });

/** Hears an event at least once, acknowledged after the method returned. */
export const Hears = <C extends EventContract>(
  contract: C,
  options: HearsOptions = {},
): On<(payload: z.output<C['payload']>, delivery: Delivery<C>) => Promise<void> | void> => register({ kind: 'hears', contract, options });

/** Takes jobs off their queue, each by one replica, acknowledged after the method returned. */
export const Works = <C extends JobContract>(
  contract: C,
  options: WorksOptions = {},
): On<(payload: z.output<C['payload']>, delivery: Delivery<C>) => Promise<void> | void> => register({ kind: 'works', contract, options });

/** Hears a signal in every replica. */
export const Listens = <C extends SignalContract>(
  contract: C,
): On<(payload: z.output<C['payload']>, signal: IncomingSignal<C>) => Promise<void> | void> => register({ kind: 'listens', contract });

/** The route under which Nest knows a registration. */
export function routeOf(registration: Registration): string {
  return `${registration.kind} ${pattern(registration.contract)}`;
}

/** A decorated method: what it is for, and where to find it. */
export interface Handling {
  readonly registration: Registration;
  readonly owner: Type;
  readonly method: string | symbol;
}

/** The handling that Nest's extras carry for a route. */
export function handlingOf(route: string, extras: Readonly<Record<string | symbol, unknown>>): Handling | undefined {
  const list = extras[HANDLINGS];
  return Array.isArray(list) ? (list as Handling[]).find(({ registration }) => routeOf(registration) === route) : undefined;
}

// Several decorators on one method add up; Nest's own would each replace the last.
function register<F>(registration: Registration): On<F> {
  return (target, key, method) => {
    const handling: Handling = { registration, owner: target.constructor as Type, method: key };
    const all = [...((Reflect.getMetadata(HANDLINGS, target, key) as Handling[] | undefined) ?? []), handling];
    Reflect.defineMetadata(HANDLINGS, all, target, key);
    MessagePattern(
      all.map((one) => routeOf(one.registration)),
      { [HANDLINGS]: all },
    )(target, key, method);
  };
}
