import { z } from 'zod';
import { ManifestDocument } from './document.js';

/** The JSON Schema of ambit.yaml, for editors; what a schema cannot say is left to `ambit validate`. */
export function manifestJsonSchema(): unknown {
  return { ...z.toJSONSchema(ManifestDocument, { io: 'input', unrepresentable: 'any' }), title: 'ambit.yaml' };
}
