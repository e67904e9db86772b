import { z } from 'zod';

/** A list whose entries may be lists themselves, as documents have that are put together from parts. Reads as one flat list. */
export function nestedList<T extends z.ZodType>(item: T, max: number) {
  return (
    z
      .array(z.union([item, z.array(item).max(max)]))
      .max(max)
      // The compiler does not see through flat() where the item's type is a parameter.
      .transform((entries) => entries.flat() as z.output<T>[])
      .refine((items) => items.length <= max, `at most ${max}`)
  );
}
