import { createHash } from 'node:crypto';
import { httpApi } from '@ambit/contracts';
import { z } from 'zod';
import { AmbitError } from './ambit-error.js';
import type { AmbitClient } from './client.js';

/** Whose bytes they are: skills and plugins are kept by two services. */
export type BlobKind = 'skill' | 'plugin';
export interface Upload {
  readonly kind: BlobKind;
  readonly bytes: Uint8Array;
  readonly signal?: AbortSignal;
}

/** The most that one request carries. */
export const PART_BYTES = 256 * 1024;
const Have = z.object({ have: z.int().min(0) });

/** sha256 of bytes, 64 lower-case hexadecimal digits. */
export function digestOfBytes(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** Stores bytes in parts and gives their digest. Goes on where an earlier upload stopped; bytes that are there cost one request. */
export async function upload(client: AmbitClient, { kind, bytes, signal }: Upload): Promise<string> {
  const route = kind === 'skill' ? httpApi.putSkillBlob : httpApi.putPluginBlob;
  const digest = digestOfBytes(bytes);
  // Another upload of the same bytes may run beside this one, so the server says where to go on; it never needs more steps than there are parts.
  const steps = 2 * Math.ceil(bytes.byteLength / PART_BYTES) + 2;
  for (let step = 0, offset = 0; step < steps; step++) {
    const data = Buffer.from(bytes.subarray(offset, offset + PART_BYTES)).toString('base64');
    try {
      const answer = await client.request(route, {
        body: { digest, bytes: bytes.byteLength, offset, data },
        ...(signal === undefined ? {} : { signal }),
      });
      if (answer.complete) return digest;
      offset = answer.have;
    } catch (error) {
      const moved = error instanceof AmbitError && error.code === 'BLOB_OFFSET' ? Have.safeParse(error.data) : undefined;
      if (moved?.success !== true) throw error;
      offset = moved.data.have;
    }
  }
  throw new Error(`${bytes.byteLength} bytes were sent and the server still has only a part of them; try again`);
}
