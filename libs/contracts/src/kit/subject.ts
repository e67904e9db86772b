import type { Keys } from './contract.js';
import { fromToken, toToken } from './token.js';

const KEY = /\{([A-Za-z]+)\}/g;

/** The subject to publish to, each key escaped. Throws a TypeError when a key is missing or empty. */
export function subject<const S extends string>(contract: { readonly subject: S }, keys: Keys<S>): string {
  return contract.subject.replace(KEY, (_match, name: string) => {
    const value = (keys as Readonly<Record<string, string | undefined>>)[name];
    if (value === undefined) throw new TypeError(`${contract.subject} needs the key ${name}`);
    return toToken(value);
  });
}

/** The subject to subscribe to: a `*` for every key that `keys` does not fix. */
export function pattern<const S extends string>(contract: { readonly subject: S }, keys: Partial<Keys<S>> = {}): string {
  return contract.subject.replace(KEY, (_match, name: string) => {
    const value = (keys as Readonly<Record<string, string | undefined>>)[name];
    return value === undefined ? '*' : toToken(value);
  });
}

/** Every owner's events about one thing, where a single key says what it is. */
export function eventsAbout(key: string): string {
  return `ambit.evt.*.v1.*.*.${toToken(key)}`;
}

/** Reads the keys back off a received subject; throws a TypeError when it is not one of the contract's. */
export function keysOf<const S extends string>(contract: { readonly subject: S }, received: string): Keys<S> {
  const wanted = contract.subject.split('.');
  const tokens = received.split('.');
  if (wanted.length !== tokens.length) throw new TypeError('the subject is not one of this contract');
  const keys: Record<string, string> = {};
  for (const [index, part] of wanted.entries()) {
    const token = tokens[index] ?? '';
    if (part.startsWith('{')) keys[part.slice(1, -1)] = fromToken(token);
    else if (part !== token) throw new TypeError('the subject is not one of this contract');
  }
  return keys as Keys<S>;
}
