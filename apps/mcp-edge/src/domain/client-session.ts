import { z } from 'zod';

/** How long a client's session is good for; as long as its tombstone is kept. */
export const CLIENT_SESSION_MS = 24 * 60 * 60_000;

/** What a client can be asked for its person's or model's sake. */
export const ClientAbilities = z.object({ form: z.boolean(), url: z.boolean(), sampling: z.boolean() });
export type ClientAbilities = z.output<typeof ClientAbilities>;

/** What a client says that it can do. One that declares elicitation and says nothing of modes has forms alone. */
export function abilitiesOf({ elicitation, sampling }: Readonly<Record<string, unknown>>): ClientAbilities {
  const asks = typeof elicitation === 'object' && elicitation !== null ? elicitation : undefined;
  return {
    form: asks !== undefined && ('form' in asks || !('url' in asks)),
    url: asks !== undefined && 'url' in asks,
    sampling: typeof sampling === 'object' && sampling !== null,
  };
}

/** What a client of the revisions with sessions carries in `Mcp-Session-Id`: all that a replica needs to serve it. */
export const ClientSession = z.object({
  /** Whose token it began with: no other opens it. */
  tokenId: z.uuid(),
  /** Random: the client, among the clients of that token. */
  clientId: z.string().regex(/^[0-9a-f]{32}$/),
  version: z.string().max(20),
  can: ClientAbilities,
  at: z.number(),
});
export type ClientSession = z.output<typeof ClientSession>;
