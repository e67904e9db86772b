import { describe, expect, it } from '@jest/globals';
import { ServerSpec } from '@ambit/contracts';
import { bindingHash, nextGeneration } from './identity.js';
import { decidePut, secretsOf } from './put-server.js';

const stdio = { type: 'stdio', command: 'node', args: ['server.js'], env: { KEY: 'a' } };
const http = { type: 'http', url: 'https://mcp.example.com/mcp', headers: { 'X-Team': 'a' } };
const specOf = (transport: unknown, more: object = {}): ServerSpec => ServerSpec.parse({ slug: 'one', transport, ...more });
const decide = (spec: ServerSpec, more: Partial<Parameters<typeof decidePut>[0]> = {}) =>
  decidePut({
    before: undefined,
    spec,
    ifVersion: undefined,
    ifGeneration: undefined,
    secrets: new Set(['key']),
    urlProblem: () => undefined,
    ...more,
  });

describe('the generation of a server', () => {
  const before = (transport: unknown) => ({ transport: specOf(transport).transport, configGeneration: 3 });
  it.each([
    { what: 'another command', from: stdio, to: { ...stdio, command: 'deno' }, generation: 4 },
    { what: 'another argument', from: stdio, to: { ...stdio, args: ['other.js'] }, generation: 4 },
    { what: 'another variable', from: stdio, to: { ...stdio, env: { KEY: 'b' } }, generation: 4 },
    { what: 'a secret in place of a value', from: stdio, to: { ...stdio, env: { KEY: { secret: 'key' } } }, generation: 4 },
    { what: 'another type', from: stdio, to: http, generation: 4 },
    { what: 'another URL', from: http, to: { ...http, url: 'https://mcp.example.com/other' }, generation: 4 },
    { what: 'another header', from: http, to: { ...http, headers: { 'X-Team': 'b' } }, generation: 4 },
    { what: 'another spelling of the URL', from: http, to: { ...http, url: 'HTTPS://MCP.example.com:443/mcp' }, generation: 3 },
    {
      what: 'another order of variables',
      from: { ...stdio, env: { A: '1', B: '2' } },
      to: { ...stdio, env: { B: '2', A: '1' } },
      generation: 3,
    },
    { what: 'nothing', from: stdio, to: stdio, generation: 3 },
  ])('after $what', ({ from, to, generation }) => {
    expect(nextGeneration(before(from), specOf(to).transport)).toBe(generation);
  });
  it('begins at one, and no name, time-out or switch moves it', () => {
    expect(decide(specOf(stdio)).configGeneration).toBe(1);
    const spec = specOf(stdio, { display: 'new', enabled: false, timeouts: { callMs: 1_000 } });
    expect(decide(spec, { before: { spec: specOf(stdio), configGeneration: 5, version: 2 } })).toMatchObject({
      configGeneration: 5,
      version: 3,
      endsInstances: true,
    });
  });
  it('leaves the binding hash without secrets', () => {
    expect(bindingHash(specOf({ ...http, headers: { Authorization: 'Bearer x' } }).transport)).toBe(bindingHash(specOf(http).transport));
  });
});

describe('what is refused', () => {
  it('a URL of another protocol', () => {
    expect(() => decide(specOf({ type: 'http', url: 'ftp://example.com/' }))).toThrow(expect.objectContaining({ code: 'URL_REFUSED' }));
  });
  it('a URL that may not be called', () => {
    expect(() => decide(specOf(http), { urlProblem: () => 'closed' })).toThrow(
      expect.objectContaining({ code: 'URL_REFUSED', data: { reason: 'closed' } }),
    );
  });
  it.each([
    { 'X-A': 'a\r\nX-B: b' },
    { 'X-A': 'a\u0000' },
    { Authorization: 'a', authorization: 'b' },
    { Host: 'other' },
    { 'Mcp-Session-Id': 'x' },
  ])('the headers %j', (headers) => {
    expect(() => decide(specOf({ ...http, headers }))).toThrow(expect.objectContaining({ code: 'HEADER_REFUSED' }));
  });
  it('a secret that is not there, a version that moved, another owner’s name', () => {
    expect(() => decide(specOf({ ...http, headers: { A: { secret: 'none' } } }))).toThrow(
      expect.objectContaining({ code: 'SECRET_UNKNOWN', data: { name: 'none' } }),
    );
    const before = { spec: specOf(stdio, { owner: 'plugin:acme' }), configGeneration: 1, version: 4 };
    expect(() => decide(specOf(stdio), { before })).toThrow(expect.objectContaining({ code: 'SLUG_TAKEN' }));
    expect(() => decide(specOf(stdio, { owner: 'plugin:acme' }), { before, ifVersion: 3 })).toThrow(
      expect.objectContaining({ code: 'VERSION_CONFLICT', data: { version: 4 } }),
    );
  });
  it('autoApprove, by name', () => {
    expect(ServerSpec.safeParse({ slug: 'one', transport: { ...stdio, autoApprove: ['*'] } }).error?.issues[0]?.message).toContain(
      'autoApprove',
    );
    expect(ServerSpec.safeParse({ slug: 'one', transport: stdio, autoApprove: ['*'] }).error?.issues[0]?.message).toContain('autoApprove');
  });
});

it('secrets are found once each', () => {
  expect(secretsOf(specOf({ ...stdio, env: { A: { secret: 'key' }, B: { secret: 'key' }, C: 'plain' } }).transport)).toEqual(['key']);
});
