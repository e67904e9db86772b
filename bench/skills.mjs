// What many skills cost: 10,000 over 1,000 agents in a mirrored folder. How long a list and the effective skills of an agent take, and a storm of 1,000 changes.
// `node bench/skills.mjs [agents] [skills each]` starts a skill-store of its own on a NATS and a Postgres of its own, and fails over the budget.
import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { skillStore } from '@ambit/contracts';
import { startNats, startPostgres, until } from '@ambit/testing';
import { build } from '../tools/build.mjs';

const [agents = 1_000, each = 10] = process.argv.slice(2).map(Number);
const ASKED = 400;
const CHANGES = 1_000;
/** Of what is asked to see whether a storm is over. */
const AT_ONCE = 64;
const SETTLE_MS = 600_000;
/** In ms; of what is asked the 95th of a hundred. */
const BUDGET = { list: 100, effective: 20, storm: 5_000 };

await build((line) => console.error(line));
const home = await mkdtemp(join(tmpdir(), 'ambit-bench-skills-'));
const root = join(home, 'skills');
const scope = (agent) => join(root, '.agent-scopes', `agent-${agent}`);
const every = Array.from({ length: agents }, (_, agent) => agent);
for (const agent of every)
  for (let skill = 0; skill < each; skill++) {
    const folder = join(scope(agent), `skill-${skill}`);
    await mkdir(join(folder, 'scripts'), { recursive: true });
    const text = `Do what agent ${agent} does with skill ${skill}. `.repeat(40);
    await writeFile(
      join(folder, 'SKILL.md'),
      `---\nname: skill-${skill}\ndescription: Skill ${skill} of agent ${agent}, for a measurement\n---\n\n${text}\n`,
    );
    await writeFile(join(folder, 'scripts', 'run.sh'), `echo ${agent} ${skill}\n`);
  }

const nats = await startNats();
const postgres = await startPostgres();
const main = fileURLToPath(new URL('../apps/skill-store/dist/main.js', import.meta.url));
const environment = { NATS_URL: nats.url, DATABASE_URL: postgres.url, OPS_PORT: '0', SKILLS_ROOT: root, AMBIT_LOG_LEVEL: 'warn' };
const store = spawn(process.execPath, [main], { env: { ...process.env, ...environment }, stdio: ['ignore', 'inherit', 'inherit'] });
const ended = new Promise((resolve) => store.once('exit', resolve));

const list = (agent) => nats.bus.call(skillStore.listSkills, { agentId: `agent-${agent}`, limit: 100 });
const effective = (agent) => nats.bus.call(skillStore.effectiveSkills, { agentId: `agent-${agent}`, plugins: [] });
const note = (agent, skill) =>
  nats.bus.call(skillStore.readSkill, { agentId: `agent-${agent}`, name: `skill-${skill}`, path: 'note.md' }).then(
    ({ text }) => text,
    () => undefined,
  );
const has = async (agent) => (await list(agent).catch(() => ({ items: [] }))).items.length === each;
/** Times in order, in ms, of agents spread over all. */
async function timed(ask) {
  const times = [];
  for (let index = 0; index < ASKED; index++) {
    const beganAt = performance.now();
    await ask((index * 7_919) % agents);
    times.push(performance.now() - beganAt);
  }
  return times.sort((one, other) => one - other);
}
const at = (times, part) => times[Math.floor(times.length * part)];

/** Writes a file into each of these skills and waits until the store serves all of them. */
async function storm(places) {
  const word = `Written ${performance.now()}.`;
  const beganAt = performance.now();
  for (const [agent, skill] of places) await writeFile(join(scope(agent), `skill-${skill}`, 'note.md'), word);
  const wroteAt = performance.now();
  const left = [...places];
  await until(async () => {
    // One is asked for while it goes on; asking for all of them would be what is measured.
    for (let some = left.slice(-1); left.length > 0; some = left.slice(-AT_ONCE)) {
      const served = await Promise.all(some.map(([agent, skill]) => note(agent, skill)));
      if (served.some((text) => text !== word)) return false;
      left.length -= some.length;
    }
    return true;
  }, SETTLE_MS);
  return { writeMs: wroteAt - beganAt, settledMs: performance.now() - wroteAt };
}

try {
  const startedAt = performance.now();
  for (const agent of every) await until(() => has(agent), SETTLE_MS);
  const mirroredMs = performance.now() - startedAt;
  await timed(list);
  const lists = await timed(list);
  const effectives = await timed(effective);
  const deep = await storm(Array.from({ length: CHANGES }, (_, index) => [Math.floor(index / each) % agents, index % each]));
  const wide = await storm(Array.from({ length: CHANGES }, (_, index) => [index % agents, index % each]));
  const rows = [
    [`mirrored from nothing, ${agents * each} skills`, mirroredMs],
    ['list of an agent, p50', at(lists, 0.5)],
    ['list of an agent, p95', at(lists, 0.95), BUDGET.list],
    ['effective skills of an agent, p50', at(effectives, 0.5)],
    ['effective skills of an agent, p95', at(effectives, 0.95), BUDGET.effective],
    [`${CHANGES} changes of ${Math.ceil(CHANGES / each)} agents, settled after the last`, deep.settledMs, BUDGET.storm],
    [`${CHANGES} changes of ${Math.min(CHANGES, agents)} agents, settled after the last`, wide.settledMs, BUDGET.storm],
  ];
  console.log('| what | ms | budget |\n| --- | ---: | ---: |');
  for (const [what, ms, budget] of rows) console.log(`| ${what} | ${ms.toFixed(1)} | ${budget ?? ''} |`);
  if (rows.some(([, ms, budget]) => budget !== undefined && ms > budget)) process.exitCode = 1;
} finally {
  store.kill('SIGTERM');
  await ended;
  await postgres.stop();
  await nats.stop();
  await rm(home, { recursive: true, force: true });
}
