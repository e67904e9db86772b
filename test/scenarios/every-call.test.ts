import { HEADER, MAX_PAYLOAD_BYTES, platformFaults, services, type Rpc, type ServiceName, type ServiceUse } from '@ambit/contracts';
import { withClient } from '@ambit/testing';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import type { Msg } from '@nats-io/nats-core';
import { isBuilt, startSystem, type System } from '../system/system.js';
import { verifies } from '../verifies.js';

jest.setTimeout(120_000);
const names = (Object.keys(services) as ServiceName[]).filter(isBuilt);
const calls: [string, Rpc][] = names.flatMap((name) => {
  const use: ServiceUse = services[name];
  return use.answers.map((contract): [string, Rpc] => [contract.subject, contract]);
});
const KEYS: Readonly<Record<string, string>> = { agentId: 'nobody' };
const subjectOf = ({ subject }: Rpc): string =>
  subject.replace(/\{([A-Za-z]+)\}/g, (_match, key: string) => KEYS[key] ?? '00000000-0000-7000-8000-000000000000');

let system: System;
beforeAll(async () => {
  system = await startSystem({ services: names });
});
afterAll(() => system?.stop());

const ask = (contract: Rpc, body: string): Promise<Msg> => system.connection.request(subjectOf(contract), body, { timeout: 10_000 });

/** The fault of an answer, held against what its contract and the platform declare. */
function faultOf(contract: Rpc, answer: Msg): { readonly code: string; readonly data?: unknown } {
  const body = answer.json<{ code: string; message: string; data?: unknown }>();
  const declared = contract.errors[body.code] ?? { ...platformFaults }[body.code as keyof typeof platformFaults];
  expect({ subject: contract.subject, code: body.code, declared: declared !== undefined }).toMatchObject({ declared: true });
  expect(answer.headers?.get(HEADER.errorCode)).toBe(String(declared?.status));
  expect(answer.headers?.get(HEADER.error)).toBe(body.message.replace(/[\r\n]+/g, ' '));
  expect(Object.keys(body).filter((key) => !['code', 'message', 'data'].includes(key))).toEqual([]);
  // Neither a stack nor a file of ours.
  expect(answer.string()).not.toMatch(/\bat \S+ \(|\.(ts|js):\d+|node_modules|postgres(ql)?:\/\//);
  return body;
}

it('has calls to ask', () => {
  expect(calls.length).toBeGreaterThan(5);
});

verifies('R-NATS-7#1', 'no call takes what is no JSON, of another shape, or too large, and each says so', async () => {
  for (const [, contract] of calls) {
    expect(faultOf(contract, await ask(contract, '{"a":')).code).toBe('INVALID_INPUT');
    expect(faultOf(contract, await ask(contract, '[1]')).code).toBe('INVALID_INPUT');
    const large = faultOf(contract, await ask(contract, JSON.stringify('x'.repeat(MAX_PAYLOAD_BYTES))));
    expect(large).toMatchObject({ code: 'TOO_LARGE', data: { limitBytes: MAX_PAYLOAD_BYTES } });
  }
});

verifies('R-NATS-7#1', 'an answer is never sent to a subject of the asker’s choosing, where the service itself could write', async () => {
  const heard: string[] = [];
  for (const name of names) {
    const use: ServiceUse = services[name];
    const [emitted] = use.emits;
    if (emitted === undefined) continue;
    const chosen = emitted.subject.replace(/\{[A-Za-z]+\}/g, 'chosen');
    const subscription = system.connection.subscribe(chosen, {
      callback: (_error, message) => void heard.push(`${name}: ${message.string()}`),
    });
    for (const contract of use.answers) system.connection.publish(subjectOf(contract), '[1]', { reply: chosen });
    // An ordinary answer of each, behind it.
    for (const contract of use.answers) await ask(contract, '[1]');
    await system.connection.flush();
    subscription.unsubscribe();
  }
  expect(heard).toEqual([]);
});

verifies('R-NATS-7#1', 'what fails inside is told as a code with a trace id, and nothing of it', async () => {
  const plain = calls.filter(([, contract]) => contract.input.safeParse({}).success && contract.timeoutMs <= 30_000);
  expect(plain.length).toBeGreaterThan(0);
  const codes = () =>
    Promise.all(
      plain.map(async ([, contract]) => {
        const answer = await system.connection.request(subjectOf(contract), '{}', { timeout: 30_000 });
        if (answer.headers?.has(HEADER.errorCode) !== true) return 'answered';
        const { code, data } = faultOf(contract, answer);
        if (code === 'INTERNAL') expect(data).toEqual({ traceId: expect.stringMatching(/^[0-9a-f]{32}$/) });
        return code;
      }),
    );
  // Tables that are gone are foreseen nowhere; a database that is away is.
  await withClient(system.databaseUrl, async (client) => {
    const { rows } = await client.query(
      `SELECT nspname FROM pg_namespace WHERE nspname ~ '^(session_service|tool_gateway|skill_store|mcp_broker|plugin_registry)$'`,
    );
    for (const { nspname } of rows) await client.query(`ALTER SCHEMA "${nspname}" RENAME TO "${nspname}_gone"`);
  });
  expect(await codes()).toContain('INTERNAL');
  await system.loseDatabase();
  expect(await codes()).toContain('UNAVAILABLE');
});
