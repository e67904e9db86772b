// npm run faults: holds the faults that contracts declare against those that tests saw on the wire.
//   --check  says nothing against the tree while no full run of the tests is on record
// A declared fault stands for one owner and code: several contracts of an owner may share it, and one test is enough. A received one has to be
// declared exactly there: by its contract or HTTP route, or for results of calls or for runs in general.
import { fileURLToPath } from 'node:url';
import './typescript.mjs';
import { build } from './build.mjs';
import { readRecords } from './shown/records.mjs';

/** Declared, and received by no test yet: each is owed a test, and leaves this list with it. */
const OWED = new Set([
  'EDGE_TOKEN_UNKNOWN of admin-api',
  'CATALOG_DRIFT of mcp-broker',
  'OFFER_AMBIGUOUS of mcp-broker',
  'SUBSCRIPTION_LIMIT of mcp-broker',
  'NOT_TEXT of mcp-broker',
  'AGENT_KIND of session-service',
  'SCRIPT_NOT_ENABLED of skill-store',
  'NO_CALL of tool-gateway',
  'AUTHORIZATION_REQUIRED of results of a batch',
]);

const root = fileURLToPath(new URL('..', import.meta.url));
const { files, fullRun } = readRecords(root);
if (fullRun === undefined) {
  const says = 'no full run of the tests is on record: run `npm test` first';
  if (!process.argv.includes('--check')) {
    console.error(`faults: ${says}`);
    process.exit(1);
  }
  console.log(`not judged, ${says}`);
  process.exit(0);
}

await build(() => undefined);
const { allContracts, allRoutes, httpFaults, platformFaults, refusals, runFaults } = await import('./gen/contracts.mjs');
const { judgeFaults } = await import('./shown/judge-faults.ts');

const seen = files.flatMap(({ file, entries }) => entries.filter(({ kind }) => kind === 'fault').map((entry) => ({ file, ...entry })));
const contracts = allContracts().map(({ contract }) => contract);
const routes = allRoutes().map(({ route }) => route);
const judged = judgeFaults({ contracts, routes, platformFaults, httpFaults, refusals, runFaults }, seen);
const { undeclared, declared } = judged;
const nameOf = ({ owner, code }) => `${code} of ${owner}`;
const missing = judged.missing.filter((one) => !OWED.has(nameOf(one)));
const paid = [...OWED].filter((name) => !judged.missing.some((one) => nameOf(one) === name));
for (const name of paid) console.error(`${name} is received by a test now; take it out of OWED in tools/faults.mjs`);
for (const { owner, code } of missing) console.error(`no test received ${code} of ${owner}`);
for (const { subject, code, file } of undeclared) console.error(`${file} received ${code} from ${subject}, which does not declare it`);
if (missing.length + undeclared.length + paid.length > 0) {
  console.error(
    `\n${missing.length} of ${declared} declared faults were received by no test, ${undeclared.length} received ones are not declared`,
  );
  process.exit(1);
}
console.log(`${declared} declared faults, all but ${OWED.size} received by a test, which are owed; none undeclared`);
