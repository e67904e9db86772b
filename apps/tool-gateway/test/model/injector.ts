import { SELF_DECLARED_DEPS_METADATA } from '@nestjs/common/constants.js';
import { z } from 'zod';

type Made = new (...dependencies: never[]) => object;
const Declared = z.array(z.object({ index: z.int(), param: z.custom<Made>() })).default([]);

/** Makes the services of one process as Nest would, at a fraction of its cost: what is given stands for what it is given for. */
export class Injector {
  constructor(private readonly known: Map<unknown, unknown>) {}

  get<T>(token: (abstract new (...dependencies: never[]) => T) | (new (...dependencies: never[]) => T)): T {
    // What is known under a class is one of it, or stands for one.
    return this.#get(token) as T;
  }

  #get(token: unknown): unknown {
    if (this.known.has(token)) return this.known.get(token);
    if (typeof token !== 'function') throw new Error(`nothing is given for ${String(token)}`);
    const declared = Declared.parse(Reflect.getMetadata(SELF_DECLARED_DEPS_METADATA, token));
    const dependencies = [...declared].sort((left, right) => left.index - right.index).map(({ param }) => this.#get(param));
    const made: unknown = Reflect.construct(token, dependencies);
    this.known.set(token, made);
    return made;
  }
}
