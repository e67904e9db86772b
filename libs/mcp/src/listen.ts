import type { Client } from '@modelcontextprotocol/client';
import { setTimeout as wait } from 'node:timers/promises';
import type { ListKind } from './session.js';

const FIRST_RETRY_MS = 250;
const LAST_RETRY_MS = 30_000;

/**
 * Keeps a modern server's subscription stream open until `ended`: the protocol never re-opens one by itself.
 * The notifications arrive at the handlers that are registered for the older era too; `onGap` says that some may have been missed.
 */
export function listenToChanges(client: Client, ended: AbortSignal, onGap: (kind: ListKind) => void): void {
  const offered = client.getServerCapabilities();
  const kinds = (['tools', 'prompts', 'resources'] as const).filter((kind) => offered?.[kind]?.listChanged === true);
  const filter = {
    ...(offered?.tools?.listChanged === true ? { toolsListChanged: true } : {}),
    ...(offered?.prompts?.listChanged === true ? { promptsListChanged: true } : {}),
    ...(offered?.resources?.listChanged === true ? { resourcesListChanged: true } : {}),
  };
  if (Object.keys(filter).length === 0) return;
  void keepOpen(client, filter, { ended, onGap: () => kinds.forEach(onGap) });
}

/** Has a modern server tell of one resource's updates until `ended`; `onGap` says that some may have been missed. */
export function listenToResource(client: Client, uri: string, on: { readonly ended: AbortSignal; readonly onGap: () => void }): void {
  void keepOpen(client, { resourceSubscriptions: [uri] }, on);
}

async function keepOpen(
  client: Client,
  filter: Parameters<Client['listen']>[0],
  { ended, onGap }: { readonly ended: AbortSignal; readonly onGap: () => void },
): Promise<void> {
  let retryMs = FIRST_RETRY_MS;
  let isFirst = true;
  while (!ended.aborted) {
    try {
      const subscription = await client.listen(filter, { signal: ended });
      retryMs = FIRST_RETRY_MS;
      if (!isFirst) onGap();
      isFirst = false;
      if ((await subscription.closed) === 'local') return;
    } catch (error) {
      if (ended.aborted) return;
      client.onerror?.(error instanceof Error ? error : new Error(String(error)));
    }
    await wait(retryMs, undefined, { signal: ended, ref: false }).catch(() => undefined);
    retryMs = Math.min(retryMs * 2, LAST_RETRY_MS);
  }
}
