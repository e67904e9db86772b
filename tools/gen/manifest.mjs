// The JSON Schema of ambit.yaml, read off the schema that `ambit validate` uses.
import { manifestJsonSchema } from '@ambit/client/manifest';

export const manifestSchemaText = () => `${JSON.stringify(manifestJsonSchema(), null, 2)}\n`;
