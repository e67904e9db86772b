// Every subject by owner, and what JetStream holds.
import { allContracts, buckets, objectStores, streams } from './contracts.mjs';
import { bytes, duration, HEADER, table } from './markdown.mjs';

const KIND = { rpc: 'question', event: 'fact', job: 'work', signal: 'signal' };

function rowsOf(contracts) {
  return contracts.map(({ name, contract }) => [
    `\`${contract.subject}\``,
    KIND[contract.kind],
    contract.summary,
    contract.audience === 'worker' ? 'yes' : '',
    contract.kind === 'rpc' ? duration(contract.timeoutMs) : '',
    contract.idempotent === true ? 'yes' : '',
    `\`${name}\``,
  ]);
}

export function subjectsPage() {
  const owners = groupByOwner(allContracts());
  const sections = [...owners]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([owner, contracts]) => {
      return `## ${owner}\n\n${table(['Subject', 'Kind', 'What', 'Worker', 'Time-out', 'Idempotent', 'Contract'], rowsOf(contracts))}`;
    });
  return [
    HEADER,
    '# Subjects\n',
    'Each `{key}` is one token, escaped. *Worker* marks what a worker may publish, in its own NATS account and under its own agent id. *Idempotent* calls may',
    'be sent again after a time-out; nothing else is retried once it may have had an effect.\n',
    ...sections,
    '## Streams, buckets and object stores\n',
    table(
      ['Stream', 'Subjects', 'Retention', 'At most', 'Kept for', 'Message'],
      Object.values(streams).map((stream) => [
        `\`${stream.name}\``,
        stream.subjects.map((subject) => `\`${subject}\``).join(', '),
        stream.retention,
        bytes(stream.maxBytes),
        stream.maxAgeMs === 0 ? 'until purged' : duration(stream.maxAgeMs),
        bytes(stream.maxMessageBytes),
      ]),
    ),
    table(
      ['Bucket', 'At most', 'Value', 'TTL'],
      Object.values(buckets).map((bucket) => [
        `\`${bucket.name}\``,
        bytes(bucket.maxBytes),
        bytes(bucket.maxValueBytes),
        bucket.ttlMs === undefined ? '' : duration(bucket.ttlMs),
      ]),
    ),
    table(
      ['Object store', 'At most'],
      Object.values(objectStores).map((store) => [`\`${store.name}\``, bytes(store.maxBytes)]),
    ),
  ].join('\n');
}

/** `Map.groupBy` is Node 21's; the tools also run on 20. */
function groupByOwner(contracts) {
  const owners = new Map();
  for (const item of contracts) owners.set(item.contract.owner, [...(owners.get(item.contract.owner) ?? []), item]);
  return owners;
}
