import { z } from 'zod';

/** A list whose entries may be lists themselves, as documents have that are put together from parts. Reads as one flat list. */
export function nestedList<T extends z.ZodType>(item: T, max: number) {
  // Flattened first: what is wrong with an item is then told of it alone, and not of each way in which it could have stood there.
  const flat = (given: readonly (z.input<T> | readonly z.input<T>[])[]): unknown => (Array.isArray(given) ? given.flat() : given);
  return z.preprocess(flat, z.array(item).max(max));
}
