// The worker contract in the open: plain nats.js, no library of Ambit's. Any language with a NATS client can do the same.
//   ambit worker create plain --agent guide > guide.creds
//   NATS_URL=nats://localhost:4222 AMBIT_CREDS=guide.creds AMBIT_AGENT=guide node examples/worker-plain-nats/worker.mjs
import { createHash, randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { gunzipSync } from 'node:zlib';
import { AckPolicy, jetstream } from '@nats-io/jetstream';
import { connect, credsAuthenticator, headers } from '@nats-io/transport-node';

const AGENT = process.env.AMBIT_AGENT ?? 'guide';
const creds = process.env.AMBIT_CREDS ? await readFile(process.env.AMBIT_CREDS) : undefined;
const nc = await connect({
  servers: process.env.NATS_URL,
  maxReconnectAttempts: -1,
  ...(creds && { authenticator: credsAuthenticator(creds), inboxPrefix: inboxOf(creds) }),
});

/** One question and its answer: plain JSON both ways; a failure carries ADR-32 headers and {code, message, data}. */
async function call(subject, body, seconds = 30) {
  const header = headers();
  header.set('Ambit-Timeout-Ms', String(seconds * 1000));
  const message = await nc.request(`ambit.rpc.${subject}.${AGENT}`, JSON.stringify(body), { timeout: seconds * 1000, headers: header });
  const answer = message.json();
  if (message.headers?.get('Nats-Service-Error-Code'))
    throw Object.assign(new Error(`${answer.code}: ${answer.message}`), { code: answer.code });
  return answer;
}

/** The closed snapshot: gzip in parts, and it must hash to the fingerprint that the job names. */
async function snapshotOf(fingerprint) {
  const get = async (key) =>
    (await nc.request(`$JS.API.DIRECT.GET.KV_ambit_snapshots.$KV.ambit_snapshots.${AGENT}.${fingerprint}.${key}`, '', { timeout: 5000 }))
      .data;
  const head = JSON.parse(Buffer.from(await get('head')).toString());
  const parts = [];
  for (let n = 0; n < head.parts; n++) parts.push(await get(n));
  const canonical = gunzipSync(Buffer.concat(parts), { maxOutputLength: head.bytes });
  if (createHash('sha256').update(canonical).digest('hex') !== fingerprint) throw new Error('not the snapshot this run was given');
  return JSON.parse(canonical.toString());
}

/** Stands where a model goes: lines `use <tool> with <json>` are calls, a blank line ends a step, all of it read off the tape. */
function sample(messages) {
  const request = messages.findLastIndex((message) => message.role === 'user');
  const since = messages.slice(request + 1);
  const steps = messages[request].content
    .map((block) => block.text ?? '')
    .join('\n')
    .split(/\n\s*\n/)
    .map((step) => [...step.matchAll(/^use (\S+)(?: with (.+))?$/gm)])
    .filter((step) => step.length > 0);
  const next = steps[since.filter((message) => message.role === 'assistant').length] ?? [];
  const calls = next.map(([, name, json]) => ({ callId: randomUUID(), name, arguments: json ?? '{}' }));
  return { calls, content: calls.length > 0 ? [] : [{ type: 'text', text: 'Done.' }] };
}

/** The tape is the state: a redelivered or resumed run goes on where it stopped. */
async function work(ref, cancelled) {
  for (;;) {
    if (cancelled()) return 'cancelled';
    const tape = await call('session-service.v1.tape.read', ref);
    if (tape.openCalls.length > 0) {
      const batch = await call('tool-gateway.v1.batch.execute', { ...ref, step: tape.step, calls: tape.openCalls }, 600);
      if (batch.results.some((result) => result.status === 'waiting')) return 'waiting'; // a resume run will follow
      continue;
    }
    const said = sample(tape.messages);
    await call('session-service.v1.run.step', { ...ref, step: tape.step, role: 'assistant', content: said.content, calls: said.calls });
    if (said.calls.length === 0) return 'completed';
  }
}

async function run(job) {
  const { runId, originRunId, sessionId, fingerprint } = job.json();
  const ref = { runId, originRunId, sessionId, fingerprint };
  try {
    ref.token = (await call('session-service.v1.run.start', ref)).token; // opens this attempt, closes any older one
  } catch (error) {
    if (error.code !== 'TURN_ENDED') throw error;
    return job.ack();
  }
  const snapshot = await snapshotOf(fingerprint);
  process.stdout.write(`run ${runId}: ${snapshot.tools.length} tools, ${snapshot.skills.length} skills\n`);
  let cancelled = false;
  const beat = setInterval(async () => {
    job.working(); // the job stays ours
    cancelled = cancelled || (await call('session-service.v1.run.renew', ref).catch(() => ({ cancelled: false }))).cancelled;
  }, 5000);
  try {
    const status = await work(ref, () => cancelled);
    await call('session-service.v1.run.finish', { ...ref, status });
    await job.ackAck();
    process.stdout.write(`run ${runId}: ${status}\n`);
  } finally {
    clearInterval(beat);
  }
}

/** A user JWT says which inbox it may listen on. */
function inboxOf(file) {
  const jwt = /BEGIN NATS USER JWT-+\s*([\w.-]+)/.exec(file.toString())?.[1] ?? '';
  const claims = JSON.parse(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString());
  return (claims.nats.sub.allow ?? []).find((subject) => subject.startsWith('_INBOX.'))?.replace(/\.>$/, '');
}

process.once('SIGTERM', () => process.exit(0)); // a run that was going is redelivered
const name = `${AGENT}_shared`;
const runs = jetstream(nc).consumers.getConsumerFromInfo({
  stream_name: 'AMBIT_RUNS',
  name,
  config: { durable_name: name, ack_policy: AckPolicy.Explicit },
});
process.stdout.write(`plain worker takes the runs of ${AGENT}\n`);
for (;;) {
  const job = await runs.next({ expires: 30_000, bind: true }); // any exception from here ends the process, and the run is redelivered
  if (job) await run(job);
}
