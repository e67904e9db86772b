import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { compose } from '../src/compose.js';
import { diffSnapshots } from '../src/diff.js';
import { excerptOf, fitResults } from '../src/fit.js';
import { readQuestion } from '../src/question.js';
import { isSecretKey, PREVIEW_BYTES, previewArguments, REDACTED } from '../src/redact.js';
import { hex, ok, openPolicy, plugin, server, skill, world } from './fixtures.js';
import { check } from './property.js';

describe('fitting', () => {
  const result = fc.record({ whole: fc.nat(10_000), excerpt: fc.option(fc.nat(1_200), { nil: undefined }), line: fc.nat(80) });
  it('stays in its budget or says that it cannot, keeps order, and one result for every call', () => {
    check(
      fc.property(
        fc.array(result, { maxLength: 20 }),
        fc.nat(60_000),
        fc.option(fc.nat(6_000), { nil: undefined }),
        (sizes, budget, wholeLimit) => {
          const results = sizes.map((size, index) => ({ callId: `call-${index}`, ...size }));
          const fit = fitResults(results, { budget, ...(wholeLimit === undefined ? {} : { wholeLimit }) });
          const least = sizes.reduce((sum, size) => sum + Math.min(size.whole, size.excerpt ?? size.whole, size.line), 0);
          if (!fit.fits) {
            expect(least).toBeGreaterThan(budget);
            return;
          }
          expect(fit.total).toBeLessThanOrEqual(budget);
          expect(fit.total).toBe(fit.results.reduce((sum, one) => sum + one.size, 0));
          expect(fit.results.map((one) => one.callId)).toEqual(results.map((one) => one.callId));
          for (const [index, one] of fit.results.entries()) expect(one.size).toBe(results[index]?.[one.as]);
        },
      ),
      3_000,
    );
  });

  it('shortens from the last backwards, and an earlier one only when the later are at their shortest', () => {
    check(
      fc.property(
        fc.array(
          fc.nat(5_000).map((extra) => ({ whole: 2_000 + extra, excerpt: 1_100, line: 60 })),
          { minLength: 1, maxLength: 12 },
        ),
        fc.nat(40_000),
        (sizes, budget) => {
          const fit = fitResults(
            sizes.map((size, index) => ({ callId: `${index}`, ...size })),
            { budget },
          );
          if (!fit.fits) return;
          const firstShort = fit.results.findIndex((one) => one.as !== 'whole');
          if (firstShort >= 0) expect(fit.results.slice(firstShort + 1).every((one) => one.as === 'line')).toBe(true);
        },
      ),
    );
    const three = ['a', 'b', 'c'].map((callId) => ({ callId, whole: 1_000, excerpt: 300, line: 50 }));
    expect(fitResults(three, { budget: 2_500 })).toMatchObject({ results: [{ as: 'whole' }, { as: 'whole' }, { as: 'excerpt' }] });
    expect(fitResults(three, { budget: 2_100 })).toMatchObject({ results: [{ as: 'whole' }, { as: 'whole' }, { as: 'line' }] });
    expect(fitResults(three, { budget: 100 })).toEqual({ fits: false, smallest: 150 });
    expect(fitResults(three, { budget: 9_999, wholeLimit: 500 })).toMatchObject({
      results: [{ as: 'excerpt' }, { as: 'excerpt' }, { as: 'excerpt' }],
    });
  });

  it('cuts texts between characters', () => {
    check(
      fc.property(fc.string({ unit: 'grapheme' }), fc.nat(40), (text, bytes) => {
        const cut = excerptOf(text, bytes);
        expect(text.startsWith(cut)).toBe(true);
        expect(Buffer.byteLength(cut)).toBeLessThanOrEqual(bytes);
        const next = String.fromCodePoint(text.codePointAt(cut.length) ?? 65);
        if (cut !== text) expect(Buffer.byteLength(cut + next)).toBeGreaterThan(bytes);
      }),
      3_000,
    );
  });
});

describe('previews', () => {
  it('are JSON, at most 16 KiB, whatever the arguments', () => {
    const big = fc.dictionary(
      fc.string({ unit: 'grapheme' }),
      fc.oneof(
        fc.jsonValue(),
        fc.nat(40_000).map((length) => 'é'.repeat(length)),
        fc.array(fc.string(), { maxLength: 300 }),
      ),
    );
    check(
      fc.property(big, (input) => {
        const preview = previewArguments(input);
        expect(Buffer.byteLength(preview.text)).toBeLessThanOrEqual(PREVIEW_BYTES);
        expect(() => JSON.parse(preview.text)).not.toThrow();
      }),
      500,
    );
    expect(
      previewArguments(Object.fromEntries(Array.from({ length: 200 }, (_, index) => [`key${index}`, 'x'.repeat(1_900)]))).truncated,
    ).toBe(true);
    expect(previewArguments({ id: '7', list: [1, null] })).toEqual({
      text: '{"id":"7","list":[1,null]}',
      redacted: false,
      truncated: false,
    });
  });

  const canary = 'Zq8vT3nW5xYb7dFg9hJk2m';
  it('never show what stands under a key that opens something, at any depth', () => {
    check(
      fc.property(
        fc.constantFrom(
          'password',
          'apiKey',
          'X-Api-Key',
          'client_secret',
          'authorization',
          'Cookie',
          'accessToken',
          'refresh_token',
          'PRIVATE_KEY',
          'ＰＡＳＳＷＯＲＤ',
        ),
        fc.constantFrom('', 'a', 'ab'),
        fc.anything(),
        (key, wrap, noise) => {
          const inner = { [key]: noise === undefined ? canary : [canary, { canary }] };
          const input = [...wrap].reduce<Record<string, unknown>>((value, name) => ({ [name]: [value] }), inner);
          const preview = previewArguments(input);
          expect(preview.text).not.toContain(canary);
          expect(preview.redacted).toBe(true);
        },
      ),
    );
    expect(isSecretKey('maxTokens') || isSecretKey('page_token') || isSecretKey('description')).toBe(false);
  });

  it.each([
    `Bearer ${canary}`,
    `ghp_${canary}AAAA`,
    `sk-${canary}`,
    `eyJhbGciOiJIUzI1NiJ9.eyJ${canary}.${canary}`,
    `postgres://user:${canary}@host/db`,
    `curl -H 'x' --data password=${canary}`,
    `-----BEGIN RSA PRIVATE KEY-----\n${canary}\n-----END RSA PRIVATE KEY-----`,
    `${'x'.repeat(1_990)} Bearer ${canary}`,
  ])('hide what looks like a secret in %j', (text) => {
    const preview = previewArguments({ note: text });
    expect(preview.text).not.toContain(canary.slice(0, 8));
    expect(preview.redacted).toBe(true);
    expect(preview.text.includes(REDACTED) || preview.truncated).toBe(true);
  });
});

describe('the difference of two snapshots', () => {
  const base = compose(world()).record;
  it('of equal records is none, and of opposite order the opposite', () => {
    expect(diffSnapshots(base, compose(world()).record)).toMatchObject({ same: true, other: [] });
    const part = fc.record({
      servers: fc.subarray([1, 2, 3]),
      skills: fc.subarray(['triage', 'report']),
      plugins: fc.subarray(['kit', 'tools']),
    });
    const recordOf = ({ servers, skills, plugins }: { servers: number[]; skills: string[]; plugins: string[] }) =>
      compose(
        world({
          servers: ok(...servers.map((seed) => server(seed))),
          skills: ok(...skills.map((name) => skill(name))),
          plugins: ok(...plugins.map((id) => plugin(id))),
        }),
      ).record;
    check(
      fc.property(part, part, (left, right) => {
        const forth = diffSnapshots(recordOf(left), recordOf(right));
        const back = diffSnapshots(recordOf(right), recordOf(left));
        for (const list of ['tools', 'skills', 'plugins', 'servers'] as const) {
          expect(forth[list].added).toEqual(back[list].removed);
          expect(forth[list].removed).toEqual(back[list].added);
        }
        expect(forth.same).toBe(JSON.stringify(recordOf(left)) === JSON.stringify(recordOf(right)));
      }),
      300,
    );
  });

  it('names what changed in words', () => {
    const changed = compose(
      world({
        servers: ok(server(1, { names: ['echo', 'add'], configGeneration: 2, catalogHash: hex(9) })),
        skills: ok(skill('triage', { digest: hex(8) })),
        model: { name: 'another', vision: true },
        policies: [openPolicy({ servers: ['server-1'] })],
      }),
    ).record;
    const diff = diffSnapshots(base, changed);
    expect(diff.tools.removed).toEqual(['mcp__server-2__echo']);
    expect(diff.tools.changed).toContainEqual({ name: 'mcp__server-1__echo', changes: ['the target: its configuration: 1 → 2'] });
    expect(diff.servers).toMatchObject({
      removed: ['server-2'],
      changed: [{ name: 'server-1', changes: ['its list changed', 'its configuration: 1 → 2'] }],
    });
    expect(diff.skills.changed).toEqual([{ name: 'triage', changes: ['its content changed'] }]);
    expect(diff.other).toEqual([
      'model: {"name":"a-model","vision":false} → {"name":"another","vision":true}',
      'the policy lists other servers, plugins, skills, tools, aliases or subagents',
    ]);
    expect(diff.same).toBe(false);
  });
});

describe('questions', () => {
  const option = { label: 'Yes' };
  it.each<[string, Record<string, unknown>, boolean]>([
    ['one option', { question: 'Q?', options: [option] }, true],
    ['ten options', { question: 'Q?', options: Array.from({ length: 10 }, () => option) }, true],
    ['eleven', { question: 'Q?', options: Array.from({ length: 11 }, () => option) }, false],
    ['none', { question: 'Q?', options: [] }, false],
    ['a text of 500', { question: 'q'.repeat(500), options: [option] }, true],
    ['a text of 501', { question: 'q'.repeat(501), options: [option] }, false],
    ['a header of 31', { header: 'h'.repeat(31), question: 'Q?', options: [option] }, false],
    ['a label of 31', { question: 'Q?', options: [{ label: 'l'.repeat(31) }] }, false],
    ['header for label', { question: 'Q?', options: [{ header: 'Yes' }] }, true],
    ['an unknown key', { question: 'Q?', options: [option], extra: 1 }, false],
    ['a blank question', { question: ' ', options: [option] }, false],
  ])('with %s', (_name, input, legal) => {
    expect('question' in readQuestion(input)).toBe(legal);
  });

  it('have defaults', () => {
    expect(readQuestion({ question: 'Q?', options: [{ header: 'Yes' }] })).toEqual({
      question: { header: '', question: 'Q?', options: [{ label: 'Yes', description: '' }], multiple: false, custom: true },
    });
  });
});
