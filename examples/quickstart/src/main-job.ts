import type { FollowedEvent } from '@ambit/client';
import { fingerprint as fingerprintOf } from '@ambit/capability';
import { httpApi, type Interaction } from '@ambit/contracts';
import { entryWords, follow, resultsOf, send, snapshotOf, tapeOf } from './conversation.js';
import { bold, chapter, claim, dim, short, tell } from './narrator.js';
import type { Setting } from './setting.js';

const ASKED = 'mcp__memory__create_entities';
const READ = 'mcp__memory__open_nodes';

/** A message, a batch of calls to four servers, a person's decision, the resume run, and what is on record. */
export async function mainJob(setting: Setting, isOnce: boolean): Promise<void> {
  chapter('3. user:alice sends the agent a message, over HTTP');
  const note = `greeting-${Date.now().toString(36)}`;
  const message = [
    'use skill_view with {"name":"house-rules"}',
    '',
    'use mcp__everything__echo with {"message":"good morning"}',
    'use mcp__calculator__get-sum with {"a":19,"b":23}',
    'use mcp__greeter-hello__echo with {"message":"Alice"}',
    `use ${ASKED} with {"entities":[{"name":"${note}","entityType":"note","observations":["19 and 23 make 42"]}]}`,
    '',
    `use ${READ} with {"names":["${note}"]}`,
  ].join('\n');
  for (const line of message.split('\n')) tell(dim(`| ${line}`));
  const { sessionId, runId } = await send(setting, message);
  const run = await setting.admin.request(httpApi.getRun, { params: { id: runId } });
  const snapshot = await snapshotOf(setting.admin, run.fingerprint);
  claim(fingerprintOf(snapshot) === run.fingerprint, 'the fingerprint is the hash of exactly that record');

  chapter('4. The worker takes the run from its subject and does what it says');
  let asked: Interaction | undefined;
  const followed = await follow(setting.alice, runId, async (event: FollowedEvent) => {
    if (event.type !== 'interaction.requested') return;
    asked = event.data.interaction;
    await decide(setting, asked, isOnce);
  });
  if (asked === undefined) throw new Error('nobody was asked, though ambit.yaml has a rule that asks');
  const decided = await setting.admin.request(httpApi.getInteraction, { params: { id: asked.id } });
  const resumed = followed.runs.find(({ resumes }) => resumes === runId);
  claim(
    followed.runs.some(({ status, runId: id }) => id === runId && status === 'suspended'),
    'while it waited the run was suspended and held no worker',
  );
  claim(
    resumed !== undefined && followed.runs.at(-1)?.status === 'completed',
    `after the decision one resume run went on and ended: ${resumed?.runId ?? ''}`,
    followed.runs,
  );

  const tape = await tapeOf(setting.alice, sessionId);
  await showRecord(setting, { runId, note, decided, tape: tape.filter((entry) => entry.runId === runId || entry.runId === resumed.runId) });
}

async function decide({ bob, admin }: Setting, interaction: Interaction, isOnce: boolean): Promise<void> {
  tell(`${bold('waits')}: ${interaction.tool} ${interaction.argumentsPreview.slice(0, 120)}`);
  claim(
    interaction.tool === ASKED && interaction.rule !== null,
    `it asks because of the rule ${interaction.rule ?? ''}, for ${interaction.principal.id}`,
  );
  if (!isOnce) {
    tell('');
    tell('Decide, in another terminal, in this folder:');
    tell(bold(`  npx ambit approve ${interaction.id}`));
    tell(dim(`  npx ambit deny ${interaction.id}      (until ${interaction.expiresAt}; url ${admin.url})`));
    tell('');
    return;
  }
  const decided = await bob.request(httpApi.decideInteraction, {
    params: { id: interaction.id },
    body: { decision: 'allow', reason: 'a note does no harm' },
  });
  tell(`user:bob allowed it, over HTTP (${decided.status})`);
}

interface Record {
  readonly runId: string;
  readonly note: string;
  readonly decided: Interaction;
  readonly tape: Awaited<ReturnType<typeof tapeOf>>;
}

async function showRecord({ admin }: Setting, { runId, note, decided, tape }: Record): Promise<void> {
  chapter('5. What is on record: the tape, then the journal');
  for (const entry of tape) tell(entryWords(entry));
  const results = resultsOf(tape);
  const code = results.get(ASKED)?.code ?? '';
  const isAllowed = code !== 'DENIED' && code !== 'APPROVAL_EXPIRED';
  const answered = (tool: string, expected: string, what: string) => {
    const result = results.get(tool);
    claim(result?.text.includes(expected) === true, `${what}: ${dim(result?.text.replaceAll(/\s+/g, ' ').slice(0, 60) ?? '')}`, result);
  };
  answered('skill_view', 'House rules', 'the skill was read');
  answered('mcp__everything__echo', 'good morning', 'the server over stdio answered');
  answered('mcp__calculator__get-sum', '42', 'the server over HTTP summed');
  answered('mcp__greeter-hello__echo', 'Alice', 'the plugin’s server greeted');
  if (isAllowed) answered(READ, note, 'the note was written once it was allowed');
  else claim(results.get(READ)?.text.includes(note) === false, `the note was not written: ${code}`, results.get(READ));

  const calls = [];
  for await (const call of admin.pages(httpApi.listCalls, { query: { originRunId: runId } })) calls.push(call);
  for (const call of [...calls].reverse())
    tell(
      `${call.tool} ${call.status}, for ${call.principal}, rule ${call.rule ?? 'none'}${call.approvedBy === null ? '' : `, approved by ${bold(call.approvedBy)}`}, under ${short(call.fingerprint)}`,
    );
  const asked = calls.filter(({ tool }) => tool === ASKED);
  if (isAllowed) {
    const by = decided.decidedBy?.id ?? '';
    claim(asked.length === 1, 'the call that waited stands there once', asked);
    claim(asked[0]?.status === 'completed' && asked[0].approvedBy === by, `it is recorded as approved by ${by}`, asked);
  } else
    claim(
      asked.every(({ status }) => status === 'refused'),
      `the call that waited was never made; the decision stands as ${decided.status}`,
      asked,
    );
  const ended = calls.filter(({ status, parked }) => status === 'completed' && !parked);
  claim(
    ended.length === (isAllowed ? 6 : 5),
    `${ended.length} calls were made, each with its end`,
    calls.map(({ tool, status }) => [tool, status]),
  );
}
