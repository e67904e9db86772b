// `npm run -s bench -- [--json] [--quick] [--repetitions N]`: what a call costs, against a floor measured in the same run.
import { readFile } from 'node:fs/promises';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { connect, credsAuthenticator } from '@nats-io/transport-node';
import { machineOf } from '../tools/machine.mjs';
import { callCell, directCell, floorCell } from './cells.mjs';
import { measureComposing } from './composing.mjs';
import { idleMemory, processorMs, syncedWriteMs } from './footprint.mjs';
import { JournalView } from './journal.mjs';
import { load } from './load.mjs';
import { reportOf } from './report.mjs';
import { openStack, syncIntervalOf } from './stack.mjs';
import { comparisonsOf, complaintsOf, rowsOf } from './verdict.mjs';
import { BenchWorker } from './worker.mjs';
import { World } from './world.mjs';

const { values: options } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    quick: { type: 'boolean', default: false },
    repetitions: { type: 'string', default: '5' },
  },
});
const repetitions = Math.max(5, Math.min(12, Number(options.repetitions) || 0));
/** Calls of one cell in one repetition, by how many are open at once. */
const CALLS = new Map(
  options.quick
    ? [
        [1, 128],
        [8, 256],
        [64, 1_024],
      ]
    : [
        [1, 384],
        [8, 1_024],
        [64, 4_096],
      ],
);
const WARM_UP = { lanes: 64, calls: options.quick ? 2_048 : 8_192 };
const LANES = 64;

const say = (line) => process.stderr.write(`bench  ${line}\n`);

async function measure(stack) {
  const idle = idleMemory(stack);
  const credentials = join(stack.keysDir, 'creds', 'init.creds');
  const connection = await connect({
    servers: stack.natsUrl,
    name: 'bench',
    noAsyncTraces: true,
    authenticator: credsAuthenticator(await readFile(credentials)),
  });
  const world = await World.of(stack);
  const cells = [];
  try {
    const worker = await BenchWorker.connect({
      natsUrl: stack.natsUrl,
      credentials: await world.declare(),
      agentId: world.agentId,
      name: world.workerName,
    });
    await Promise.all([world.begin(LANES), worker.take(LANES)]);
    say(`${LANES} runs of ${LANES} sessions are open`);
    cells.push(await floorCell(connection, { natsUrl: stack.natsUrl, credentials }));
    const journal = await JournalView.open(connection);
    cells.push(
      callCell(
        { worker, journal },
        { name: 'memory', title: 'worker → gateway → broker → in-memory echo', tool: 'mcp__bench-memory__echo' },
      ),
    );
    cells.push(
      callCell({ worker, journal }, { name: 'stdio', title: 'worker → gateway → runner → stdio echo', tool: 'mcp__bench-stdio__echo' }),
    );
    cells.push(await directCell());
    const measured = await repeat(cells, { journal, worker, stack });
    await worker.finish();
    return { cells, measured, idle, nats: connection.info?.version };
  } finally {
    for (const cell of cells) await cell.close();
    if (!stack.isOwn) await world.remove().catch((error) => say(`what was declared for the measurement is still there: ${error.message}`));
    await connection.close();
  }
}

/** Every cell once in each repetition, in turn and never in the same order. */
async function repeat(cells, { journal, worker, stack }) {
  for (const cell of cells) await load(cell, WARM_UP);
  await journal.quiet();
  const measured = [];
  for (let repetition = 1; repetition <= repetitions; repetition++) {
    for (const [lanes, calls] of CALLS) {
      for (let turn = 0; turn < cells.length; turn++) {
        const cell = cells[(turn + repetition) % cells.length];
        const before = await journal.lastSequence();
        const sample = () => processorMs(stack, { client: process.pid, ...cell.processes });
        const figures = await load(cell, { lanes, calls, sample });
        await journal.quiet();
        const facts = cell.isJournaled ? { facts: await journal.factsSince(before, worker.originRunIds) } : {};
        measured.push({ cell: cell.name, lanes, repetition, ...figures, ...facts });
        if (figures.errors > 0) say(`${cell.name}: ${figures.errors} errors, the last: ${cell.lastError?.message}`);
      }
    }
    say(`repetition ${repetition} of ${repetitions}`);
  }
  return measured;
}

const stack = await openStack(say);
let exitCode = 1;
try {
  const loadBefore = loadavg();
  const { cells, measured, idle, nats } = await measure(stack);
  const comparisons = comparisonsOf(measured);
  const complaints = complaintsOf(measured, comparisons);
  const result = {
    machine: {
      ...machineOf(loadBefore),
      nats,
      syncInterval: await syncIntervalOf(stack),
      syncedWriteMs: syncedWriteMs(stack.keysDir),
    },
    cells: cells.map(({ name, title }) => ({ name, title })),
    rows: rowsOf(measured),
    comparisons,
    idle,
    composing: measureComposing(),
    complaints,
    measured,
  };
  process.stdout.write(options.json ? `${JSON.stringify(result, null, 2)}\n` : `${reportOf(result)}\n`);
  for (const sentence of complaints) say(`FAILED: ${sentence}`);
  exitCode = complaints.length === 0 ? 0 : 1;
} finally {
  await stack.stop();
}
process.exit(exitCode);
