import {
  buckets,
  epochKey,
  journalSubject,
  leaseKey,
  mappingKey,
  objectStores,
  runConsumer,
  services,
  snapshotKey,
  streams,
  workerInboxPrefix,
  type ServiceUse,
} from '@ambit/contracts';
import { allContracts } from '@ambit/identity';
import { randomUUID } from 'node:crypto';
import type { Ref } from './by-hand.js';

type Contract = ReturnType<typeof allContracts>[number];
const KEY = /\{([A-Za-z]+)\}/g;

export const isForWorkers = (contract: Contract): boolean => 'audience' in contract && contract.audience === 'worker';

/** The subject of a contract with these keys, unescaped as a forger would send them, and `x` for every other. */
export const spelled = ({ subject }: Contract, keys: Readonly<Record<string, string>>): string =>
  subject.replace(KEY, (_match, name: string) => keys[name] ?? 'x');

/** Everything that somebody may say on the bus who is not this agent, with its keys. */
export function contractSubjects(keys: Readonly<Record<string, string>>): string[] {
  return allContracts().map((contract) => spelled(contract, keys));
}

/** What stands in streams, buckets and stores of a run, and how the server of the bus is told what to do with them. */
export function storedSubjects(agentId: string, { runId, originRunId, sessionId, fingerprint }: Ref): string[] {
  const uses: readonly ServiceUse[] = Object.values(services);
  const kv = (bucket: { readonly name: string }, key: string): string => `$KV.${bucket.name}.${key}`;
  const unknown = '0'.repeat(64);
  return [
    journalSubject.runState(runId),
    ...[journalSubject.claim, journalSubject.outcome, journalSubject.abort].map((of) => of(originRunId, unknown)),
    kv(buckets.snapshots, snapshotKey.head(agentId, fingerprint)),
    kv(buckets.snapshots, snapshotKey.part(agentId, fingerprint, 0)),
    kv(buckets.mappings, mappingKey(sessionId, fingerprint)),
    kv(buckets.leases15s, leaseKey.run(runId)),
    kv(buckets.epochs, epochKey.fence('session-service', 'user')),
    ...uses.flatMap((use) =>
      Object.entries(use.stores.writes).flatMap(([store, prefixes]) => prefixes.map((prefix) => `$KV.${store}.${prefix}x`)),
    ),
    ...Object.values(objectStores).flatMap(({ name }) => [`$O.${name}.C.x`, `$O.${name}.M.x`]),
    ...Object.values(streams).flatMap(({ name }) => [
      `$JS.API.STREAM.DELETE.${name}`,
      `$JS.API.STREAM.PURGE.${name}`,
      `$JS.API.STREAM.MSG.GET.${name}`,
      `$JS.API.STREAM.MSG.DELETE.${name}`,
      `$JS.API.DIRECT.GET.${name}`,
      `$JS.API.CONSUMER.CREATE.${name}`,
      `$JS.API.CONSUMER.DELETE.${name}.${runConsumer(agentId, 'shared')}`,
      `$JS.API.CONSUMER.INFO.${name}.${runConsumer(agentId, 'shared')}`,
      `$JS.API.CONSUMER.MSG.NEXT.${name}.${runConsumer(agentId, 'shared')}`,
      `$JS.ACK.${name}.${runConsumer(agentId, 'shared')}.1.1.1.1.1`,
    ]),
    `$JS.API.DIRECT.GET.KV_${buckets.snapshots.name}.$KV.${buckets.snapshots.name}.${snapshotKey.head(agentId, fingerprint)}`,
    '$JS.API.STREAM.CREATE.X',
    '$JS.API.INFO',
    '$SRV.PING',
    '$SRV.INFO.session-service',
    '$SYS.REQ.CLAIMS.UPDATE',
    '$SYS.REQ.SERVER.PING',
    ...[agentId, 'session-service', 'tool-gateway'].map((name) => `${workerInboxPrefix({ agentId: name, credentialName: 'main' })}.forged`),
    `_INBOX.session-service.forged`,
    `_R_.forged`,
    randomUUID(),
  ];
}

/** What nobody behind the wall may listen to. */
export const DEAF = [
  '>',
  '*',
  'ambit.>',
  'ambit.*.>',
  'ambit.jrn.>',
  'ambit.evt.>',
  '$JS.API.>',
  '$JS.ACK.>',
  '$JS.>',
  '$KV.>',
  '$O.>',
  '$SRV.>',
  '$SYS.>',
  '_INBOX.>',
  '_R_.>',
] as const;
