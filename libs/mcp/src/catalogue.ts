import type { ToolDefinition } from '@ambit/contracts';
import { ListKeeper } from './list-keeper.js';
import type { McpSession } from './session.js';
import { catalogueHash, type Diagnostic } from './tools.js';

/** The tools of one server as last read whole. Never changed in place. */
export interface Catalogue {
  readonly tools: readonly ToolDefinition[];
  readonly diagnostics: readonly Diagnostic[];
  /** sha256 of the canonical JSON of the tools, lower-case hex: equal exactly when the tools are. */
  readonly hash: string;
}

export interface CatalogueKeeperOptions {
  readonly session: (signal: AbortSignal) => Promise<McpSession>;
  /** A list with other tools than the last one was read whole, or the first one at all. */
  readonly onCatalogue: (catalogue: Catalogue, session: McpSession) => void;
  /** The list could not be read again; the last good one stands. `undefined` = it is fresh once more. */
  readonly onStale: (reason: string | undefined) => void;
  readonly onError?: (error: unknown) => void;
}

/** Keeps the tools of one server. */
export class CatalogueKeeper extends ListKeeper<Catalogue> {
  constructor({ onCatalogue, ...options }: CatalogueKeeperOptions) {
    super({
      ...options,
      kind: 'tools',
      onList: onCatalogue,
      read: async (session, signal) => {
        const { tools, diagnostics, ttlMs } = await session.listTools(signal);
        return { list: { tools, diagnostics, hash: catalogueHash(tools) }, ttlMs };
      },
    });
  }
}
