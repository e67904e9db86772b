import {
  Hex64,
  OfferHashes,
  Server,
  ServerSpec,
  ServerState,
  type ServerAuthorization,
  type ServerHead,
  type mcpBroker,
} from '@ambit/contracts';
import type { Prisma } from '@ambit/db';
import { z } from 'zod';
import { Accepted, HeldTools, type HeldTool } from './domain/held-tools.js';

export type ServerRow = Prisma.BrokerServerGetPayload<object>;
/** What is known of a server beside its configuration. */
export type Status = Pick<ServerRow, 'state' | 'reason' | 'runsAs' | 'protocol'>;

/** The stored configuration; throws when it is not one, which only a hand in the database can bring about. */
export const specOf = (row: Pick<ServerRow, 'spec'>): ServerSpec => ServerSpec.parse(JSON.parse(row.spec));

/** What its last good list claimed of the platform's names. */
export const refusedNamesOf = (row: Pick<ServerRow, 'refusedNames'>): Server['refusedNames'] =>
  Server.shape.refusedNames.parse(JSON.parse(row.refusedNames));

/** What is held back of its tools, and which definitions were accepted. */
export const heldToolsOf = (row: Pick<ServerRow, 'heldTools'>): HeldTool[] => HeldTools.parse(JSON.parse(row.heldTools));
export const acceptedToolsOf = (row: Pick<ServerRow, 'acceptedTools'>): Accepted => Accepted.parse(JSON.parse(row.acceptedTools));

function stateOf(row: ServerRow, isConnecting: boolean): z.output<typeof ServerState> {
  if (!row.enabled) return 'disabled';
  return isConnecting && row.state !== 'connected' ? 'connecting' : ServerState.parse(row.state);
}

/** The catalogue counts only for the server it was read from: another command or URL is another server. */
const catalogHashOf = (row: ServerRow): string | null => (row.catalogOf === row.configGeneration ? row.catalogHash : null);
const isStale = (row: ServerRow): boolean => catalogHashOf(row) !== null && row.state !== 'connected' && row.state !== 'idle';

/** The package's word on its tools stands, until the server itself was listed. */
export const isFromPackage = (row: ServerRow): boolean => row.packaged === 'listed' && catalogHashOf(row) !== null;
/** Its calls say which definition was pinned: a snapshot may have it from the package. */
export const comparesDefinitions = (row: ServerRow): boolean => row.packaged !== null || specOf(row).holdChanges;
const FROM_PACKAGE = 'Its tools are listed from its package; it is started at its first call';
const catalogFrom = (row: ServerRow): Server['catalogFrom'] =>
  catalogHashOf(row) === null ? null : isFromPackage(row) ? 'package' : 'server';
const reasonOf = (row: ServerRow): string | null => row.reason ?? (row.state === 'idle' && isFromPackage(row) ? FROM_PACKAGE : null);

/** What the row knows of each list beside the tools: its hash, and the generation it was read from. */
const KnownOffers = z.partialRecord(z.enum(['prompts', 'resources', 'skills']), z.object({ hash: Hex64, of: z.int() }));
export type KnownOffers = z.output<typeof KnownOffers>;
export const knownOffers = (row: Pick<ServerRow, 'offers'>): KnownOffers => KnownOffers.parse(JSON.parse(row.offers));

/** The lists that count for the server as it is configured now. */
export function offersOf(row: Pick<ServerRow, 'offers' | 'configGeneration'>): OfferHashes {
  const known = knownOffers(row);
  const hashOf = (kind: keyof OfferHashes): string | null => (known[kind]?.of === row.configGeneration ? known[kind].hash : null);
  return { prompts: hashOf('prompts'), resources: hashOf('resources'), skills: hashOf('skills') };
}

/** A server as the contract shows it. */
export function serverOf(row: ServerRow, isConnecting: boolean, authorization: ServerAuthorization): Server {
  return {
    ...specOf(row),
    id: row.id,
    switchedOff: row.switchedOff,
    configGeneration: row.configGeneration,
    bindingHash: row.bindingHash,
    state: stateOf(row, isConnecting),
    reason: reasonOf(row),
    catalogHash: catalogHashOf(row),
    catalogFrom: catalogFrom(row),
    tools: catalogHashOf(row) === null ? 0 : row.tools,
    refusedNames: catalogHashOf(row) === null ? [] : refusedNamesOf(row),
    stale: isStale(row),
    held: heldToolsOf(row).map(({ tool, digest }) => ({ tool, digest })),
    offers: offersOf(row),
    authorization,
    runsAs: row.runsAs,
    protocol: row.protocol,
    version: row.version,
    createdAt: row.createdAt.toISOString(),
    updatedAt: row.updatedAt.toISOString(),
  };
}

/** What ingress consults of a server. */
export function headOf(row: ServerRow, isConnecting: boolean): ServerHead {
  const { readOnly, toolPolicy, instances, owner, platforms, scopes, permissions } = specOf(row);
  return {
    serverId: row.id,
    slug: row.slug,
    projectId: row.projectId,
    owner,
    enabled: row.enabled,
    configGeneration: row.configGeneration,
    bindingHash: row.bindingHash,
    catalogHash: catalogHashOf(row),
    state: stateOf(row, isConnecting),
    reason: reasonOf(row),
    stale: isStale(row),
    readOnly,
    toolPolicy,
    scope: instances.scope,
    offers: offersOf(row),
    ...(platforms === undefined ? {} : { platforms }),
    ...(scopes === undefined ? {} : { scopes }),
    ...(permissions === undefined ? {} : { permissions }),
  };
}

/** The payload of the event that tells of a change. */
export function changeOf(row: ServerRow, epoch: number, at: Date): z.input<typeof mcpBroker.catalogueChanged.payload> {
  return {
    serverId: row.id,
    slug: row.slug,
    projectId: row.projectId,
    owner: specOf(row).owner,
    configGeneration: row.configGeneration,
    catalogHash: catalogHashOf(row),
    offers: offersOf(row),
    state: stateOf(row, false),
    epoch,
    at: at.toISOString(),
  };
}

/** How a server is, as stored. */
export const statusOf = ({ state, reason, runsAs, protocol }: ServerRow): Status => ({ state, reason, runsAs, protocol });
