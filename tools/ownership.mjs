// Who writes what: no app imports another, touches another's tables, or says and stores on the bus what `services.ts` does not give it.
// What the compiler and NATS refuse at their time is named here with its file, before anything runs.
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from './build.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Every .ts file of the apps' sources, tests left out. */
function* sources(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* sources(path);
    else if (/\.ts$/.test(entry.name) && !/\.test(-d)?\.ts$/.test(entry.name)) yield path;
  }
}

/** Delegate of the Prisma client → its Postgres schema, as the schema files say. */
function delegates() {
  const found = new Map();
  const folder = join(root, 'prisma', 'schema');
  for (const name of readdirSync(folder)) {
    const text = readFileSync(join(folder, name), 'utf8');
    for (const [, model, body] of text.matchAll(/^model (\w+) \{([\s\S]*?)^\}/gm)) {
      const schema = /@@schema\("(\w+)"\)/.exec(body)?.[1];
      if (schema !== undefined) found.set(model[0].toLowerCase() + model.slice(1), schema);
    }
  }
  return found;
}

const SENT = {
  call: 'calls',
  emit: 'emits',
  hint: 'emits',
  eventMessage: 'emits',
  jobMessage: 'enqueues',
  enqueue: 'enqueues',
  signal: 'signals',
};
// Receivers that can be a bucket or JetStream itself; a map of the process is neither.
const WRITES = /\b(?:bucket|kv|jetstream|streams|objects?Store)\)?\??\.(?:put|putBlob|create|update|delete|purge|drop|remove)\(/i;

/**
 * The rules over one file of an app. `world`: `contracts` (the built package), `schemas` (of Postgres, by owner) and `tables` (delegates).
 * Gives sentences that begin with the line.
 */
export function problemsOf({ app, text }, world) {
  const { contracts, tables } = world;
  const use = contracts.services[app];
  const problems = [];
  const at = (index) => text.slice(0, index).split('\n').length;
  const own = app.replaceAll('-', '_');
  const schemas = new Set(tables.values());

  for (const match of text.matchAll(/from '(?:@ambit\/|(?:\.\.\/)+(?:apps\/)?)([a-z-]+)(?:\/[^']*)?'/g)) {
    if (match[1] !== app && Object.hasOwn(contracts.services, match[1]))
      problems.push(`${at(match.index)}: imports ${match[1]}, another app`);
  }
  for (const match of text.matchAll(/\b(?:db|sql|transaction|client)\.(\w+)\b/g)) {
    const schema = tables.get(match[1]);
    if (schema !== undefined && schema !== own) problems.push(`${at(match.index)}: reaches the table ${match[1]} of ${schema}`);
  }
  for (const match of text.matchAll(/"(\w+)"\."\w+"/g)) {
    if (schemas.has(match[1]) && match[1] !== own) problems.push(`${at(match.index)}: names a table of ${match[1]}`);
  }
  if (use === undefined) return problems;

  for (const match of text.matchAll(/\b(call|emit|hint|eventMessage|jobMessage|enqueue|signal)\(\s*(\w+)\.(\w+)\b/g)) {
    const contract = contracts[match[2]]?.[match[3]];
    if (contract?.subject === undefined) continue;
    const list = SENT[match[1]];
    if (!use[list].some(({ subject }) => subject === contract.subject))
      problems.push(`${at(match.index)}: sends ${contract.subject}, which is not among its ${list} in services.ts`);
  }
  const { reads, writes, consumes } = use.stores;
  for (const match of text.matchAll(/\b(buckets|streams|objectStores)\.(\w+)\b/g)) {
    const store = contracts[match[1]][match[2]]?.name;
    if (store === undefined) continue;
    const isWritten = Object.hasOwn(writes, store);
    const isStream = match[1] === 'streams';
    const sends =
      [...use.enqueues, ...use.works].some(({ stream }) => stream === store) ||
      (store === 'AMBIT_EVENTS' && use.emits.length + use.hears.length > 0) ||
      (store === 'AMBIT_JOURNAL' && use.stores.journal.length > 0);
    if (!isWritten && !sends && !reads.includes(store) && !consumes.includes(store))
      problems.push(`${at(match.index)}: uses ${store}, which is not among its stores in services.ts`);
    else if (!isStream && !isWritten && WRITES.test(text)) problems.push(`${at(match.index)}: may write ${store}, which it only reads`);
  }
  return problems;
}

/** Everything that is wrong in the tree, with file and line. */
export async function ownershipProblems() {
  const contracts = await import('../libs/contracts/dist/index.js');
  const world = { contracts, tables: delegates() };
  const problems = [];
  let files = 0;
  for (const app of readdirSync(join(root, 'apps'))) {
    for (const path of sources(join(root, 'apps', app, 'src'))) {
      files++;
      for (const problem of problemsOf({ app, text: readFileSync(path, 'utf8') }, world))
        problems.push(`${relative(root, path)}:${problem}`);
    }
  }
  // One owner writes a whole bucket, and where several write one, their keys begin differently.
  const writers = new Map();
  for (const [app, { stores }] of Object.entries(contracts.services)) {
    for (const [store, prefixes] of Object.entries(stores.writes))
      for (const prefix of prefixes) {
        for (const [other, theirs] of writers.get(store) ?? [])
          if (other !== app && (prefix.startsWith(theirs) || theirs.startsWith(prefix)) && !SHARED.has(`${store} ${prefix}`))
            problems.push(`services.ts: ${app} and ${other} both write ${store} ${prefix || '(all of it)'}`);
        writers.set(store, [...(writers.get(store) ?? []), [app, prefix]]);
      }
  }
  return { files, problems };
}

/** A lease of an MCP instance is its holder's, and an HTTP server is held by a broker, a stdio server by a runner. */
const SHARED = new Set(['ambit_leases_5s instance.']);

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await build(() => undefined);
  const { files, problems } = await ownershipProblems();
  for (const problem of problems) console.log(problem);
  if (problems.length === 0) console.log(`${files} files of the apps import, send and store what is theirs`);
  process.exitCode = problems.length === 0 ? 0 : 1;
}
