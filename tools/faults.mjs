// npm run faults: holds the faults that contracts declare against those that tests saw on the wire.
//   --check  says nothing against the tree while no full run of the tests is on record
// A declared fault stands for one owner and code: several contracts of an owner may share it, and one test is enough. A received one has to be
// declared exactly there: by its contract or HTTP route, or for results of calls or for runs in general.
import { fileURLToPath } from 'node:url';
import './typescript.mjs';
import { build } from './build.mjs';
import { readRecords } from './shown/records.mjs';

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
const { missing, undeclared, declared } = judgeFaults({ contracts, routes, platformFaults, httpFaults, refusals, runFaults }, seen);
for (const { owner, code } of missing) console.error(`no test received ${code} of ${owner}`);
for (const { subject, code, file } of undeclared) console.error(`${file} received ${code} from ${subject}, which does not declare it`);
if (missing.length + undeclared.length > 0) {
  console.error(
    `\n${missing.length} of ${declared} declared faults were received by no test, ${undeclared.length} received ones are not declared`,
  );
  process.exit(1);
}
console.log(`${declared} declared faults, each received by a test; none undeclared`);
