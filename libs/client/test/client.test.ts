import { AmbitClient, AmbitError, digestOfBytes, PART_BYTES, Unreachable } from '@ambit/client';
import { httpApi } from '@ambit/contracts';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { ApiServer, ProblemAnswer } from './api-server.js';

let api: ApiServer;
let client: AmbitClient;
beforeAll(async () => {
  api = await ApiServer.start();
  client = new AmbitClient({ url: `${api.url}/`, token: 'secret-token' });
});
afterAll(() => api.stop());

const project = (id: string) => ({ id, display: '', version: 1, createdAt: '2026-01-01T00:00:00Z', updatedAt: '2026-01-01T00:00:00Z' });

it('sends what the route says, with token, version and key, and gives its answer', async () => {
  api.on(httpApi.deleteSecret, () => ({ deleted: true }));
  const answer = await client.request(httpApi.deleteSecret, {
    params: { name: 'hook-key' },
    query: { projectId: 'support' },
    ifVersion: 7,
    idempotencyKey: 'once',
  });
  expect(answer).toEqual({ deleted: true });
  expect(api.received.at(-1)).toMatchObject({
    params: { name: 'hook-key' },
    query: { projectId: 'support' },
    headers: { authorization: 'Bearer secret-token', 'if-match': '"7"', 'idempotency-key': 'once' },
  });
});

it('escapes parameters, so that no value reaches another route', async () => {
  api.on(httpApi.getAgent, ({ params }) => new ProblemAnswer(404, 'AGENT_UNKNOWN', { detail: `There is no ${params['id']}` }));
  await expect(client.request(httpApi.getAgent, { params: { id: '../project?x=1' } })).rejects.toMatchObject({
    message: 'There is no ../project?x=1',
  });
});

it('throws what the server refused, with its code and data', async () => {
  api.on(
    httpApi.putAgent,
    () => new ProblemAnswer(409, 'VERSION_CONFLICT', { detail: 'It is at 9', data: { version: 9 }, retry: 'never' }),
  );
  const refused = client.request(httpApi.putAgent, { params: { id: 'guide' }, body: {}, ifVersion: 3 });
  await expect(refused).rejects.toBeInstanceOf(AmbitError);
  await expect(refused).rejects.toMatchObject({
    code: 'VERSION_CONFLICT',
    status: 409,
    retry: 'never',
    data: { version: 9 },
    traceId: 'trace',
  });
});

it('says so when nobody answers, when it is no Ambit, and when the answer has another form; never with the token', async () => {
  api.on(httpApi.listProjects, (_received, response) => void response.writeHead(502).end('<html>bad gateway</html>'));
  api.on(httpApi.status, () => ({ version: 1 }));
  const closed = await ApiServer.start();
  const nobody = new AmbitClient({ url: closed.url, token: 'secret-token' });
  await closed.stop();
  const errors = await Promise.all(
    [nobody.request(httpApi.status), client.request(httpApi.listProjects), client.request(httpApi.status)].map((sent) =>
      sent.then(
        () => undefined,
        (error: unknown) => error,
      ),
    ),
  );
  for (const error of errors) expect(error).toBeInstanceOf(Unreachable);
  expect(errors.map(String)).toEqual([
    expect.stringContaining('does not answer (ECONNREFUSED)'),
    expect.stringContaining('answered 502 in no form that Ambit uses'),
    expect.stringContaining('GET /v1/status answered in a form that this client does not know (version'),
  ]);
  expect(errors.map(String).join()).not.toContain('secret-token');
});

it('bounds the wait for an answer, and ends with the signal it was given', async () => {
  api.on(httpApi.whoAmI, () => new Promise(() => undefined));
  const hasty = new AmbitClient({ url: api.url, token: 't', timeoutMs: 50 });
  await expect(hasty.request(httpApi.whoAmI)).rejects.toThrow('gave no answer within 0.05 s; the request may have taken effect');
  const stop = new AbortController();
  const waiting = client.request(httpApi.whoAmI, { signal: stop.signal });
  stop.abort(new Error('enough'));
  await expect(waiting).rejects.toThrow('enough');
});

it('reads every page of a list', async () => {
  api.on(httpApi.listProjects, ({ query }) =>
    query['cursor'] === undefined ? { items: [project('a'), project('b')], cursor: 'next' } : { items: [project('c')] },
  );
  const ids: string[] = [];
  for await (const { id } of client.pages(httpApi.listProjects, { query: { limit: 2 } })) ids.push(id);
  expect(ids).toEqual(['a', 'b', 'c']);
});

it('uploads in parts, goes on where the server is, and sends nothing more of what is there', async () => {
  const bytes = new Uint8Array(PART_BYTES * 2 + 5).fill(7);
  const parts: { offset: number; length: number }[] = [];
  let have = 0;
  api.on(httpApi.putSkillBlob, ({ body }) => {
    const { offset, data } = body as { offset: number; data: string };
    const length = Buffer.from(data, 'base64').byteLength;
    parts.push({ offset, length });
    // As if another upload of the same bytes had brought the second part meanwhile.
    if (offset === PART_BYTES) return new ProblemAnswer(409, 'BLOB_OFFSET', { data: { have: (have = PART_BYTES * 2) } });
    if (offset === have) have += length;
    return { have, complete: have === bytes.byteLength };
  });
  expect(await client.upload('skill', bytes)).toBe(digestOfBytes(bytes));
  expect(parts).toEqual([
    { offset: 0, length: PART_BYTES },
    { offset: PART_BYTES, length: PART_BYTES },
    { offset: PART_BYTES * 2, length: 5 },
  ]);
  parts.length = 0;
  expect(await client.upload('skill', bytes)).toBe(digestOfBytes(bytes));
  expect(parts).toEqual([{ offset: 0, length: PART_BYTES }]);
});

it('an upload that gets nowhere ends', async () => {
  api.on(httpApi.putPluginBlob, () => ({ have: 0, complete: false }));
  await expect(client.upload('plugin', new Uint8Array(10))).rejects.toThrow('still has only a part');
});

it('refuses an address or token that cannot be one', () => {
  expect(() => new AmbitClient({ url: 'ftp://x', token: 't' })).toThrow('begins with http:// or https://');
  expect(() => new AmbitClient({ url: 'http://x', token: 'two words' })).toThrow('without blanks');
});
