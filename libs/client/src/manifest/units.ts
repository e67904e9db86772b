import { parseDuration } from '@ambit/capability';
import { z } from 'zod';

const SIZES = { Ki: 1_024, Mi: 1_024 ** 2, Gi: 1_024 ** 3 } as const;

/** Bytes of `512Mi`, `64Ki` or `2Gi`; null where the text is none of these. */
function parseSize(text: string): number | null {
  const match = /^([0-9]{1,6})(Ki|Mi|Gi)$/.exec(text);
  if (match === null) return null;
  const unit = match[2] === 'Ki' || match[2] === 'Mi' ? match[2] : 'Gi';
  return Number(match[1]) * SIZES[unit];
}

const DURATION = 'a whole number and s, m, h or d, as in 30m';
const SIZE = 'a whole number and Ki, Mi or Gi, as in 512Mi';

/** A duration as people write it; milliseconds inside. */
export const Duration = z
  .string({ error: DURATION })
  .refine((text) => parseDuration(text) !== null, DURATION)
  .transform((text) => parseDuration(text) ?? 0);

/** A size as people write it; bytes inside. */
export const Size = z
  .string({ error: SIZE })
  .refine((text) => parseSize(text) !== null, SIZE)
  .transform((text) => parseSize(text) ?? 0);
