// What a run of `npm run chaos` says to a person, in Markdown.
const seconds = (ms) => (ms === null ? 'never' : `${(ms / 1_000).toFixed(1)} s`);
const counted = (counts) =>
  Object.entries(counts)
    .map(([name, number]) => `${number} ${name}`)
    .join(', ') || 'none';

export function reportOf({ command, machine, figures, checks, kills, seconds: length }) {
  const restarts = [...figures.restartMs].sort((a, b) => a - b);
  const rows = Object.entries(figures.killed).map(
    ([victim, times]) => `| ${victim} | ${times} | ${seconds(figures.longestBackMs[victim] ?? null)} |`,
  );
  const failed = checks.filter(({ held }) => !held);
  return [
    `\`${command}\``,
    '',
    `${machine.at.slice(0, 16).replace('T', ' ')} UTC, ${machine.cores} cores (${machine.cpu}), ${machine.memoryGb} GB, Node ${machine.node}, load ${machine.load.join(' → ')}. ${Math.round(length)} s under kills, two of each service and two workers.`,
    '',
    '| Killed with SIGKILL | Times | Throughput back within |',
    '| --- | --- | --- |',
    ...rows,
    '',
    `- ${kills.length} kills; processes ran again after ${seconds(restarts[restarts.length >> 1] ?? null)} (median), ${seconds(restarts.at(-1) ?? null)} (longest)`,
    `- ${figures.messages} messages, runs: ${counted(figures.runs)}; they took ${seconds(figures.medianRunMs)} (median), ${seconds(figures.slowestRuns[0]?.tookMs ?? null)} (longest); ${Object.entries(
      figures.attempts,
    )
      .map(([times, runs]) => `${runs} were taken up ${times} times`)
      .join(', ')}`,
    `- ${figures.operations} operations: ${counted(figures.ends)} (${(figures.completedShare * 100).toFixed(2)} % completed); ${figures.effects} effects counted`,
    `- why others did not: ${counted(figures.faults)}; calls without an operation: ${counted(figures.unclaimed)}`,
    `- ${figures.parked} parked, ${figures.inFlightAtKills} in flight at the kills`,
    `- ${figures.steadyPace.toFixed(1)} completed a second before the first kill, ${figures.pace.toFixed(1)} among kills; the last run ended ${seconds(figures.drainedMs)} after the load`,
    '',
    ...checks.map(({ name, held }) => `- ${held ? 'held' : '**NOT HELD**'}: ${name}`),
    ...failed.flatMap(({ name, says }) => ['', `${name}:`, ...says.map((line) => `- ${line}`)]),
  ].join('\n');
}

/** The file that is kept of a run. */
export function recordOf(result) {
  return `# What a run of the crash harness said

Written by \`npm run chaos -- --record\`; [durability.md](../../docs/durability.md) says what it does and what its rules are.

${reportOf(result)}
`;
}
