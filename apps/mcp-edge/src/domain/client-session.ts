import { z } from 'zod';

/** How long a client's session is good for; as long as its tombstone is kept. */
export const CLIENT_SESSION_MS = 24 * 60 * 60_000;

/** What a client of the revisions with sessions carries in `Mcp-Session-Id`: all that a replica needs to serve it. */
export const ClientSession = z.object({
  /** Whose token it began with: no other opens it. */
  tokenId: z.uuid(),
  /** Random: the client, among the clients of that token. */
  clientId: z.string().regex(/^[0-9a-f]{32}$/),
  version: z.string().max(20),
  /** Whether it can show a form to its person. */
  asks: z.boolean(),
  at: z.number(),
});
export type ClientSession = z.output<typeof ClientSession>;

/** Whether a client can be asked to show a form. One that says nothing of modes has forms alone. */
export function canAsk(capabilities: Readonly<Record<string, unknown>>): boolean {
  const { elicitation } = capabilities;
  if (typeof elicitation !== 'object' || elicitation === null) return false;
  return 'form' in elicitation || !('url' in elicitation);
}
