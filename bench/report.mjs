// The result as people read it; Markdown, so that it can stand in RESULTS.md as it is.

const number = (value, digits = 2) => (Number.isFinite(value) ? value.toFixed(digits) : '-');
const table = (head, rows) =>
  [
    `| ${head.join(' | ')} |`,
    `| ${head.map((_, index) => (index === 0 ? '---' : '---:')).join(' | ')} |`,
    ...rows.map((row) => `| ${row.join(' | ')} |`),
  ].join('\n');

export function reportOf({ machine, cells, rows, comparisons, idle, composing, complaints }) {
  const titles = new Map(cells.map(({ name, title }) => [name, title]));
  return [
    `${machine.cpu}, ${machine.cores} cores, ${machine.memoryGb} GB; Node ${machine.node}, nats-server ${machine.nats} that syncs ${machine.syncInterval ?? 'as its owner set it'}; a synced write ${number(machine.syncedWriteMs)} ms; load ${machine.load.join(' ')}; ${machine.at}`,
    table(
      ['way', 'at once', 'p50 ms', 'p99 ms', 'calls/s', 'errors', 'calls'],
      rows.map((row) => [titles.get(row.cell), row.lanes, number(row.p50), number(row.p99), number(row.rate, 0), row.errors, row.calls]),
    ),
    table(
      ['compared', 'at once', 'median', 'range'],
      comparisons.map(({ name, lanes, median, lowest, highest }) => [
        name,
        lanes,
        number(median),
        `${number(lowest)} to ${number(highest)}`,
      ]),
    ),
    processorTable(rows, titles),
    table(
      ['idle process', 'resident MB', 'budget MB'],
      idle.map(({ name, megabytes, budget }) => [name, number(megabytes, 0), budget ?? '-']),
    ),
    table(
      ['composing 1,000 tools', 'ms'],
      [
        ['compose, canonical text, fingerprint', number(composing.composeMs)],
        ['cache key of an unchanged world', number(composing.hitMs, 3)],
      ],
    ),
    complaints.length === 0 ? 'The budget holds.' : complaints.map((sentence) => `FAILED: ${sentence}`).join('\n'),
  ].join('\n\n');
}

/** Milliseconds of processor time a call, where it can be known: unlike the clock, other people's work hardly moves it. */
function processorTable(rows, titles) {
  const names = ['tool-gateway', 'mcp-broker', 'mcp-runner', 'session-service', 'nats', 'postgres'];
  return table(
    ['processor ms a call', 'at once', ...names],
    rows
      .filter(({ cell }) => cell === 'memory' || cell === 'stdio')
      .map(({ cell, lanes, processor }) => [titles.get(cell), lanes, ...names.map((name) => number(processor[name] ?? Number.NaN, 3))]),
  );
}
