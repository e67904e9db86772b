import { setTimeout as sleep } from 'node:timers/promises';
import { httpApi } from '@ambit/contracts';
import { follow, resultsOf, send, snapshotOf, tapeOf } from './conversation.js';
import { chapter, claim, dim, short, tell } from './narrator.js';
import type { Setting } from './setting.js';

const SLOW = 'mcp__everything__trigger-long-running-operation';
const PLUGIN_TOOL = 'mcp__greeter-hello__echo';
const SLOW_SECONDS = 6;

/** Taking a plugin away stops its tools in a run that is going, under the fingerprint that names them; the next run no longer sees them. */
export async function revocation(setting: Setting): Promise<void> {
  const { admin, alice } = setting;
  chapter('6. An administrator takes the plugin away while a run is going');
  const going = await send(
    setting,
    `use ${SLOW} with {"duration":${SLOW_SECONDS},"steps":3}\n\nuse ${PLUGIN_TOOL} with {"message":"again"}`,
  );
  const before = (await admin.request(httpApi.getRun, { params: { id: going.runId } })).fingerprint;
  const snapshot = await snapshotOf(admin, before);
  claim(toolNames(snapshot).includes(PLUGIN_TOOL), `${PLUGIN_TOOL} is in ${short(before)}, which this run was given`);
  await untilClaimed(setting, going.runId);
  const disabled = await admin.request(httpApi.disablePlugin, { params: { id: 'greeter' } });
  claim(disabled.state === 'disabled', 'the plugin is disabled everywhere', disabled.state);
  claim(await isRunning(setting, going.runId), `and answered while ${SLOW} still ran`);
  const { runs } = await follow(alice, going.runId);
  const refused = resultsOf((await tapeOf(alice, going.sessionId)).filter(({ runId }) => runId === going.runId));
  claim(
    refused.get(SLOW)?.status === 'completed',
    'the call that had begun, of another server, ended as if nothing had happened',
    refused.get(SLOW),
  );
  claim(
    refused.get(PLUGIN_TOOL)?.code === 'TOOL_GONE',
    `${PLUGIN_TOOL} was refused before any effect: TOOL_GONE, in the same run`,
    refused.get(PLUGIN_TOOL),
  );
  claim(
    runs.every(({ fingerprint }) => fingerprint === before),
    `under the same fingerprint ${short(before)}`,
  );

  chapter('7. The next run');
  const next = await send(setting, `use ${PLUGIN_TOOL} with {"message":"once more"}`);
  const after = (await admin.request(httpApi.getRun, { params: { id: next.runId } })).fingerprint;
  claim(after !== before, `has another fingerprint: ${short(after)}`);
  await follow(alice, next.runId);
  const unknown = resultsOf((await tapeOf(alice, next.sessionId)).filter(({ runId }) => runId === next.runId));
  claim(
    unknown.get(PLUGIN_TOOL)?.code === 'TOOL_NOT_IN_SNAPSHOT',
    'and to it the tool is as unknown as one that never was: TOOL_NOT_IN_SNAPSHOT',
    unknown.get(PLUGIN_TOOL),
  );
  const diff = await admin.request(httpApi.diffSnapshots, { params: { fingerprint: before, other: after } });
  for (const [kind, part] of Object.entries(diff)) for (const line of diffLines(kind, part)) tell(line);
  claim(
    removed(diff, 'tools').includes(PLUGIN_TOOL) && removed(diff, 'plugins').includes('greeter'),
    'the difference is the plugin and what it brought',
  );
  tell(dim(`npx ambit snapshot diff ${before} ${after}`));
}

/** Waits until the run's first call stands in the journal: from then on it runs. */
async function untilClaimed(setting: Setting, runId: string): Promise<void> {
  for (const end = performance.now() + 30_000; performance.now() < end; await sleep(100)) if (await isRunning(setting, runId)) return;
  throw new Error(`${SLOW} did not start within 30 s`);
}

async function isRunning({ admin }: Setting, runId: string): Promise<boolean> {
  const { items } = await admin.request(httpApi.listCalls, { query: { originRunId: runId } });
  return items.some(({ tool, status }) => tool === SLOW && status === 'running');
}

const isMap = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const texts = (value: unknown): readonly string[] => (Array.isArray(value) ? value.map(String) : []);

function toolNames(snapshot: Readonly<Record<string, unknown>>): readonly string[] {
  return Array.isArray(snapshot['tools']) ? snapshot['tools'].map((tool: unknown) => (isMap(tool) ? String(tool['name']) : '')) : [];
}

function removed(diff: Readonly<Record<string, unknown>>, kind: string): readonly string[] {
  const part = diff[kind];
  return isMap(part) ? texts(part['removed']) : [];
}

function diffLines(kind: string, part: unknown): readonly string[] {
  if (!isMap(part)) return [];
  return [...texts(part['added']).map((name) => `+ ${kind}: ${name}`), ...texts(part['removed']).map((name) => `- ${kind}: ${name}`)];
}
