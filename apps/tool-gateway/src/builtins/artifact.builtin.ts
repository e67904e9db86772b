import { Hex64 } from '@ambit/contracts';
import { z } from 'zod';
import type { ArtifactStore } from '../artifact.store.js';
import { errorResult, textResult, type Builtin } from './builtin.js';

const ReadInput = z.strictObject({ digest: Hex64, offset: z.int().min(0).default(0), length: z.int().min(1).max(32_768).default(8_192) });

/** Reads on in a result that was too large for the model's view. */
export function artifactBuiltin(artifacts: ArtifactStore): Builtin {
  return {
    kind: 'model',
    registration: {
      name: 'artifact_read',
      exposure: 'system-model',
      description: 'Read a part of a large result of this session by its digest, at most 32 KiB at a time.',
      inputSchema: z.toJSONSchema(ReadInput, { io: 'input' }),
      effect: 'read',
      access: 'session',
      parallel: true,
      version: 1,
      requiresConfirmation: false,
    },
    handler: async (input, { sessionId }) => {
      const parsed = ReadInput.safeParse(input);
      if (!parsed.success) return errorResult(z.prettifyError(parsed.error));
      const range = await artifacts.read({ sessionId, ...parsed.data });
      if (range === undefined) return errorResult('This session has no such artifact, or it has expired.');
      return textResult(range.data.toString('utf8'), { bytes: range.bytes, next: range.next });
    },
  };
}
