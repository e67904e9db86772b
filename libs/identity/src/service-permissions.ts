import { buckets, objectStores, pattern, serviceInboxPrefix, streams, type Contract, type ServiceUse } from '@ambit/contracts';
import type { Permissions } from './claims.js';

const bucketNames: ReadonlySet<string> = new Set(Object.values(buckets).map((bucket) => bucket.name));
const objectStoreNames: ReadonlySet<string> = new Set(Object.values(objectStores).map((store) => store.name));
const streamOfSubjects = new Map<string, string>(
  Object.values(streams).flatMap((stream) => stream.subjects.map((prefix) => [prefix, stream.name])),
);

/** What a service's connection may do, read off what it declares of itself; in the services' account. */
export function servicePermissions(name: string, use: ServiceUse): Permissions {
  const written = Object.keys(use.stores.writes);
  const read = new Set([...use.stores.reads, ...written].map(streamName));
  const consumed = new Set([...use.stores.consumes.map(streamName), ...use.hears.map(streamOf), ...use.works.map(streamOf)]);
  return {
    pub: {
      allow: unique([
        ...[...use.calls, ...use.emits, ...use.enqueues, ...use.signals].map((contract) => pattern(contract)),
        // Answers. An inbox cannot be guessed, and tracking each reply for a connection that also takes stored messages
        // costs the server a scan of thousands of unanswered ones.
        '_INBOX.>',
        '_R_.>',
        '$SRV.>',
        '$JS.API.INFO',
        '$JS.API.STREAM.INFO.*',
        ...[...read, ...consumed].flatMap(readingOf),
        ...Object.entries(use.stores.writes).flatMap(([store, prefixes]) => prefixes.flatMap((prefix) => writingOf(store, prefix))),
        ...use.stores.journal.map((prefix) => `${prefix}>`),
        ...(use.stores.purges ?? []).map((stream) => `$JS.API.STREAM.PURGE.${stream}`),
        ...(use.stores.journal.length === 0 ? [] : [`$JS.API.STREAM.PURGE.${streams.journal.name}`]),
      ]),
    },
    sub: {
      allow: unique([
        `${serviceInboxPrefix(name)}.>`,
        ...[...use.answers, ...use.answersDynamically, ...use.listens].map((contract) => pattern(contract)),
        // Who takes a stream's messages hears when one was delivered as often as it may be.
        ...[...consumed].map((stream) => `$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.${stream}.>`),
        ...['PING', 'INFO', 'STATS'].flatMap((verb) => [`$SRV.${verb}`, `$SRV.${verb}.${name}`, `$SRV.${verb}.${name}.*`]),
      ]),
    },
  };
}

/** Everything in the services' account: for `ambit init`, and for a person with a NATS command line. */
export const allPermissions: Permissions = { pub: { allow: ['>'] }, sub: { allow: ['>'] } };

function streamName(store: string): string {
  if (bucketNames.has(store)) return `KV_${store}`;
  if (objectStoreNames.has(store)) return `OBJ_${store}`;
  return store;
}

function streamOf(contract: Contract): string {
  if (contract.kind === 'job') return contract.stream;
  for (const [prefix, stream] of streamOfSubjects) if (contract.subject.startsWith(prefix.slice(0, -1))) return stream;
  throw new TypeError(`no stream stores ${contract.subject}`);
}

/** Single messages, watches and ordered consumers. */
function readingOf(stream: string): readonly string[] {
  return [`$JS.API.DIRECT.GET.${stream}`, `$JS.API.DIRECT.GET.${stream}.>`, `$JS.API.STREAM.MSG.GET.${stream}`, ...consumingOf(stream)];
}

function consumingOf(stream: string): readonly string[] {
  return [
    ...['CREATE', 'DURABLE.CREATE', 'INFO', 'MSG.NEXT', 'DELETE'].map((verb) => `$JS.API.CONSUMER.${verb}.${stream}.>`),
    `$JS.API.CONSUMER.CREATE.${stream}`,
    `$JS.API.CONSUMER.NAMES.${stream}`,
    `$JS.API.CONSUMER.LIST.${stream}`,
    `$JS.API.STREAM.MSG.DELETE.${stream}`,
    `$JS.ACK.${stream}.>`,
    `$JS.FC.${stream}.>`,
  ];
}

function writingOf(store: string, prefix: string): readonly string[] {
  if (objectStoreNames.has(store)) return [`$O.${store}.>`, `$JS.API.STREAM.PURGE.OBJ_${store}`];
  // Who owns a whole bucket may take keys out of it without leaving a mark.
  return [`$KV.${store}.${prefix}>`, ...(prefix === '' ? [`$JS.API.STREAM.PURGE.KV_${store}`] : [])];
}

function unique(subjects: readonly string[]): readonly string[] {
  return [...new Set(subjects)];
}
