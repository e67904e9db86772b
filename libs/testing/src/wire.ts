import * as contracts from '@ambit/contracts';
import { HEADER } from '@ambit/contracts';
import { MsgImpl, ProtocolHandler } from '@nats-io/nats-core/internal';
import { canariesIn } from './canary.js';
import { openRecords, record } from './records.js';
import { requestSent } from './served.js';

/** Everything above this is not looked into for faults of single calls. */
const MAX_BODY = 1024 * 1024;
const MAX_OPEN = 50_000;
// Not /livez and /readyz: whoever starts a service asks these until it answers.
const HTTP_PATHS = /^\/(v1\/|metrics$|openapi|mcp$|mcp\/)/;

interface Open {
  readonly subject: string;
  readonly answered: () => void;
}

const open = new Map<string, Open>();
const declared = new Map<string, string>();
let isWatching = false;

function readContracts(): void {
  for (const group of Object.values(contracts)) {
    if (typeof group !== 'object' || group === null) continue;
    for (const contract of Object.values(group)) {
      if (typeof contract !== 'object' || contract === null || !('kind' in contract) || contract.kind !== 'rpc') continue;
      const { subject } = contract as { subject: string };
      declared.set(withoutKeys(subject), subject);
    }
  }
}

/** `ambit.rpc.<owner>.v<n>.<noun>.<verb>`: what tells one contract from another. */
function withoutKeys(subject: string): string {
  return subject.split('.').slice(0, 6).join('.');
}

function contractOf(subject: string): string | undefined {
  if (subject.startsWith('$SRV.')) return subject.split('.').slice(0, 2).join('.');
  return declared.get(withoutKeys(subject));
}

/**
 * Watches what this process says on NATS and over fetch: counts answered requests of the running test, and records every
 * fault and every canary that comes back. Once per test file; later calls do nothing. A test of the watching itself names
 * a `folder` of its own, so that its records count for nothing.
 */
export function watchWire(folder?: string): void {
  openRecords(folder);
  if (isWatching) return;
  isWatching = true;
  readContracts();
  watchNats();
  watchFetch();
}

function watchNats(): void {
  const protocol = ProtocolHandler.prototype;
  const { publish, processMsg } = protocol;
  protocol.publish = function (subject, payload, options) {
    const reply = options?.reply ?? '';
    const contract = reply === '' ? undefined : contractOf(subject);
    if (contract !== undefined) remember(reply, { subject: contract, answered: requestSent() });
    publish.call(this, subject, payload, options);
  };
  protocol.processMsg = function (head, data) {
    const subject = Buffer.from(head.subject).toString('latin1');
    const request = open.get(subject);
    if (request !== undefined) {
      open.delete(subject);
      // The parser reuses its buffer: read now, before the listener runs.
      readAnswer(request, new MsgImpl(head, data, this));
    }
    processMsg.call(this, head, data);
  };
}

function remember(reply: string, request: Open): void {
  if (open.size >= MAX_OPEN) open.delete(open.keys().next().value ?? '');
  open.set(reply, request);
}

function readAnswer(request: Open, message: MsgImpl): void {
  // Nobody there: the server itself said so, no service did.
  if (message.data.length === 0 && message.headers?.code === 503) {
    record({ kind: 'fault', subject: request.subject, code: 'UNAVAILABLE', where: 'reply' });
    return;
  }
  request.answered();
  const text = message.string();
  lookForCanaries(request.subject, text);
  const body = parse(text);
  if (message.headers?.has(HEADER.errorCode) === true) recordCode(request.subject, body, 'reply');
  else recordResults(request.subject, body, 0);
}

function watchFetch(): void {
  const plain = globalThis.fetch;
  globalThis.fetch = async (input, init) => {
    const answered = requestSent();
    const response = await plain(input, init);
    const { pathname } = new URL(response.url === '' ? String(input instanceof Request ? input.url : input) : response.url);
    if (!HTTP_PATHS.test(pathname)) return response;
    const at = `${init?.method ?? (input instanceof Request ? input.method : 'GET')} ${pathname}`;
    answered();
    const type = response.headers.get('content-type') ?? '';
    if (type.startsWith('text/event-stream')) return response;
    // A copy, read beside the test; its end is awaited by nobody because a test may never read its own.
    void response
      .clone()
      .text()
      .then((text) => {
        lookForCanaries(at, text);
        if (type.startsWith('application/problem+json')) recordCode(at, parse(text), 'http');
        else if (type.startsWith('application/json')) recordResults(at, parse(text), 0);
      })
      .catch(() => undefined);
    return response;
  };
}

function lookForCanaries(where: string, text: string): void {
  for (const secret of canariesIn(text)) record({ kind: 'leak', where, secret });
}

function parse(text: string): unknown {
  if (text.length === 0 || text.length > MAX_BODY) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function recordCode(subject: string, body: unknown, where: 'reply' | 'http'): void {
  if (typeof body === 'object' && body !== null && 'code' in body && typeof body.code === 'string')
    record({ kind: 'fault', subject, code: body.code, where });
}

/** Single calls and runs fail inside a successful answer, wherever a `fault` stands: a call's beside its `callId`, a run's without one. */
function recordResults(subject: string, value: unknown, depth: number): void {
  if (typeof value !== 'object' || value === null || depth > 8) return;
  for (const [key, part] of Object.entries(value)) {
    if (key === 'fault' && typeof part === 'object' && part !== null && 'code' in part && typeof part.code === 'string')
      record({ kind: 'fault', subject, code: part.code, where: 'callId' in value ? 'result' : 'run' });
    else recordResults(subject, part, depth + 1);
  }
}
