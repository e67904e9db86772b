import type { z } from 'zod';

/** A text that is stored as a text: no database takes a NUL, or half a character, in one. */
export const storedText = <T extends z.ZodType<string>>(text: T) =>
  text.refine((value) => !value.includes('\0') && value.isWellFormed(), 'NUL and halves of characters may not stand in it');
