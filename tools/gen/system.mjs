// Who asks whom, who hears whom, who works for whom: read off services.ts, as a Mermaid picture and as a page.
import { allContracts, services } from './contracts.mjs';
import { HEADER, table } from './markdown.mjs';

const WORDS = { rpc: ['call', 'calls'], event: ['event', 'events'], job: ['job', 'jobs'], signal: ['signal', 'signals'] };
const WORKER = 'worker';
/** Who answers without being a service of ours. */
const OUTSIDERS = new Set([WORKER, 'permit-checker', 'reviewer']);
const names = Object.keys(services).sort();
const nameOf = new Map(allContracts().map(({ name, contract }) => [contract.subject, name]));

/** The services on whose `lists` a contract stands. */
const onLists = (contract, ...lists) =>
  names.filter((name) => lists.some((list) => services[name][list].some(({ subject }) => subject === contract.subject)));

/** Who sends a contract, and who receives it. What no service is listed for is the worker's, where its audience allows. */
function endsOf(contract) {
  const forWorker = OUTSIDERS.has(contract.owner) ? [contract.owner] : [];
  const fromWorker = contract.audience === 'worker' ? [WORKER] : [];
  switch (contract.kind) {
    case 'rpc':
      return {
        from: [...onLists(contract, 'calls'), ...fromWorker],
        to: [...onLists(contract, 'answers', 'answersDynamically'), ...forWorker],
      };
    case 'event':
      return { from: onLists(contract, 'emits'), to: onLists(contract, 'hears') };
    case 'job': {
      const takers = onLists(contract, 'works');
      return { from: onLists(contract, 'enqueues'), to: takers.length > 0 ? takers : [WORKER] };
    }
    case 'signal':
      return { from: [...onLists(contract, 'signals'), ...fromWorker], to: [...onLists(contract, 'listens'), ...forWorker] };
    default:
      throw new Error(`${contract.subject} is of no kind that this picture knows`);
  }
}

/** What the service that serves a session over MCP says and hears; it comes into services.ts with that service. */
const AWAITS_EDGE = new Set(
  ['listOffers', 'getPrompt', 'readResource', 'completeArgument', 'subscribeResource', 'unsubscribeResource', 'resourceUpdated'].map(
    (name) => `mcpBroker.${name}`,
  ),
);

/** Throws when a contract has no sender or nobody to receive it: then it is not needed, or services.ts forgot somebody. */
export function checkServices() {
  const loose = allContracts().flatMap(({ name, contract }) => {
    const { from, to } = endsOf(contract);
    if (AWAITS_EDGE.has(name)) return [];
    if (from.length === 0) return [`${name}: nobody sends it`];
    // An event may have no listener of ours: it is told to whoever wants to know.
    return to.length === 0 && contract.kind !== 'event' ? [`${name}: nobody receives it`] : [];
  });
  if (loose.length > 0) throw new Error(`libs/contracts/src/services.ts leaves contracts loose:\n  ${loose.join('\n  ')}`);
}

export function systemPicture() {
  const pairs = new Map();
  for (const { contract } of allContracts()) {
    const { from, to } = endsOf(contract);
    for (const sender of from) {
      for (const receiver of to) {
        if (sender === receiver) continue;
        const key = `${sender} ${receiver}`;
        const counts = pairs.get(key) ?? { rpc: 0, event: 0, job: 0, signal: 0 };
        counts[contract.kind] += 1;
        pairs.set(key, counts);
      }
    }
  }
  const lines = [...pairs]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, counts]) => {
      const [from, to] = key.split(' ');
      const label = Object.entries(counts)
        .filter(([, count]) => count > 0)
        .map(([kind, count]) => `${count} ${WORDS[kind][count === 1 ? 0 : 1]}`)
        .join(', ');
      const arrow = counts.rpc > 0 ? '-->' : counts.job > 0 ? '==>' : '-.->';
      return `  ${from} ${arrow}|${label}| ${to}`;
    });
  return [
    '%% Made by `npm run gen` from libs/contracts/src/services.ts.',
    'flowchart LR',
    ...names.map((name) => `  ${name}[${name}]`),
    ...[...OUTSIDERS].map((name) => `  ${name}([${name}])`),
    ...lines,
    '',
  ].join('\n');
}

const LISTS = {
  answers: 'Answers',
  answersDynamically: 'Answers, for what it holds',
  calls: 'Calls',
  emits: 'Emits',
  hears: 'Hears',
  enqueues: 'Enqueues',
  works: 'Works off',
  signals: 'Signals',
  listens: 'Listens to',
};

function storesOf({ reads, writes, journal, consumes }) {
  const code = (value) => `\`${value}\``;
  const written = Object.entries(writes).flatMap(([store, prefixes]) =>
    prefixes.map((prefix) => code(prefix === '' ? store : `${store}: ${prefix}`)),
  );
  return [
    ['Reads', reads.map(code)],
    ['Consumes', consumes.map(code)],
    ['Writes', [...written, ...journal.map(code)]],
  ].filter(([, list]) => list.length > 0);
}

export function servicesPage() {
  const sections = names.map((name) => {
    const lists = Object.entries(LISTS)
      .filter(([list]) => services[name][list].length > 0)
      .map(([list, title]) => [title, services[name][list].map(({ subject }) => `\`${nameOf.get(subject) ?? subject}\``)]);
    return `## ${name}\n\n${table(
      ['', ''],
      [...lists, ...storesOf(services[name].stores)].map(([title, list]) => [title, list.join(', ')]),
    )}`;
  });
  return [
    HEADER,
    '# Services\n',
    'What each service does on the bus. NATS permissions follow from these lists; a service that registers anything else does not start.\n',
    `\`\`\`mermaid\n${systemPicture()}\`\`\`\n`,
    ...sections,
  ].join('\n');
}
