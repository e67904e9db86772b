import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { RESERVED_NAMES, registrationProblem } from '../src/reserved.js';
import { foldName, looksQualified, qualifiedToolName, reservedNameOf } from '../src/tool-name.js';
import { check } from './property.js';

const slug = fc.stringMatching(/^[a-z0-9][a-z0-9-]{0,62}$/);
const tool = fc
  .oneof(
    fc.stringMatching(/^[A-Za-z0-9._-]{1,128}$/),
    fc.string({ unit: 'binary', minLength: 1, maxLength: 128 }),
    fc
      .tuple(fc.constantFrom('a', 'x'.repeat(30), 'x'.repeat(31)), fc.stringMatching(/^[0-9a-f]{12}$/))
      .map(([name, hash]) => `${name}_${hash}`),
  )
  .filter((name) => !/\p{Surrogate}/u.test(name));
const pair = fc.tuple(slug, tool);

describe('names of server tools', () => {
  it('are legal, at most 64 characters, and say their server', () => {
    check(
      fc.property(pair, ([server, name]) => {
        const qualified = qualifiedToolName(server, name);
        expect(qualified).toMatch(/^mcp__[a-z0-9][a-z0-9-]*__[A-Za-z0-9_-]*$/);
        expect(qualified.length).toBeLessThanOrEqual(64);
        if (server.length <= 24) expect(qualified.startsWith(`mcp__${server}__`)).toBe(true);
      }),
      3_000,
    );
  });

  it('never meet', () => {
    check(
      fc.property(fc.array(pair, { maxLength: 40 }), (pairs) => {
        const keys = new Set(pairs.map((entry) => JSON.stringify(entry)));
        expect(new Set(pairs.map(([server, name]) => qualifiedToolName(server, name))).size).toBe(keys.size);
      }),
    );
  });

  it('do not meet when a tool is named after another tool’s hashed name', () => {
    check(
      fc.property(pair, ([server, name]) => {
        const made = qualifiedToolName(server, name).slice(`mcp__${server.slice(0, 24)}__`.length);
        fc.pre(made !== name && made.length > 0);
        expect(qualifiedToolName(server, made)).not.toBe(qualifiedToolName(server, name));
      }),
    );
  });

  it('stand as they are where nothing has to be changed', () => {
    expect(qualifiedToolName('github', 'merge_pull_request')).toBe('mcp__github__merge_pull_request');
    expect(qualifiedToolName('a', '_x')).toBe('mcp__a___x');
    expect(qualifiedToolName('github', '读取')).toMatch(/^mcp__github______?[0-9a-f]{12}$/);
    expect(qualifiedToolName('s', 'a.b')).not.toBe(qualifiedToolName('s', 'a_b'));
  });
});

describe('reserved names', () => {
  it('are found in any case, width, and among invisible characters', () => {
    const names = [...RESERVED_NAMES];
    check(
      fc.property(
        fc.constantFrom(...names),
        fc.array(fc.nat(3), { minLength: 30, maxLength: 30 }),
        fc.constantFrom('', ' ', '\t', '\u200b', '\u2060', '\u00ad'),
        (name, choices, extra) => {
          const disguised = [...name].map((character, index) => {
            const choice = choices[index % choices.length];
            if (choice === 1) return character.toUpperCase();
            if (choice === 2 && character !== '_') return String.fromCharCode(character.charCodeAt(0) + 0xfee0);
            return choice === 3 ? `${character}\u200d` : character;
          });
          expect(reservedNameOf(`${extra}${disguised.join('')}${extra}`)).toBe(name);
        },
      ),
      2_000,
    );
    expect(reservedNameOf('Tape_Info')).toBe('tape_info');
    expect(reservedNameOf('tape_anything')).toBe('tape_*');
    expect(reservedNameOf('proceſs')).toBe('process');
    expect(reservedNameOf('search_issues')).toBeNull();
  });

  it('cannot be made by the name of a server’s tool', () => {
    check(
      fc.property(pair, ([server, name]) => {
        expect(reservedNameOf(qualifiedToolName(server, name))).toBeNull();
      }),
    );
  });

  it('fold to themselves, so that the table can be read', () => {
    for (const name of RESERVED_NAMES) expect(foldName(name)).toBe(name);
  });

  it('are registered under one exposure, and unlisted ones under none', () => {
    expect(registrationProblem('tape_search', 'system-model')).toBeNull();
    expect(registrationProblem('tape_search', 'user-configurable')).toBe('EXPOSURE_MISMATCH');
    expect(registrationProblem('anything', 'user-configurable')).toBe('EXPOSURE_UNLISTED');
    expect(looksQualified('ＭＣＰ__github__x')).toBe(true);
  });
});
