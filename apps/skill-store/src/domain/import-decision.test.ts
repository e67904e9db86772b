import { SkillName, type ImportChoice } from '@ambit/contracts';
import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { decideImport, freeName } from './import-decision.js';

const word = fc.stringMatching(/^[a-z0-9]{1,9}$/);
const name = fc.oneof(
  fc.array(word, { minLength: 1, maxLength: 6 }).map((parts) => parts.join('-').slice(0, 64).replace(/-+$/, '')),
  fc.constantFrom('a', 'b', 'a-copy', 'n'.repeat(64), `${'n'.repeat(58)}-copy`, `${'n'.repeat(56)}-copy-2`),
);
const digest = fc.constantFrom('a'.repeat(64), 'b'.repeat(64), 'c'.repeat(64));

it('a free name is legal, free, and the wished one where it can be', () => {
  fc.assert(
    fc.property(name, fc.option(fc.oneof(name, fc.string()), { nil: undefined }), fc.uniqueArray(name), (own, wished, taken) => {
      const names = new Set([own, ...taken]);
      const free = freeName(own, wished, (one) => names.has(one));
      expect(SkillName.safeParse(free).success).toBe(true);
      expect(names.has(free ?? '')).toBe(false);
      if (wished !== undefined && SkillName.safeParse(wished).success && !names.has(wished)) expect(free).toBe(wished);
    }),
    { numRuns: 1_000 },
  );
});

it('copies are numbered from the first that is free', () => {
  const taken = new Set(['same', 'same-copy', 'same-copy-2', 'same-copy-4']);
  expect(freeName('same', undefined, (one) => taken.has(one))).toBe('same-copy-3');
  expect(freeName('n'.repeat(64), undefined, () => false)).toBe(`${'n'.repeat(59)}-copy`);
  expect(freeName('same', undefined, () => true)).toBeUndefined();
});

it('nothing that stands is replaced but by overwrite, and then only what was previewed', () => {
  const choice = fc.record<ImportChoice>({
    name,
    digest,
    onConflict: fc.constantFrom('skip', 'rename', 'overwrite'),
    replaces: fc.option(digest),
  });
  const standing = fc.option(fc.record({ digest, folder: fc.option(fc.constant('some/folder')) }), { nil: undefined });
  fc.assert(
    fc.property(choice, standing, (chosen, there) => {
      const decision = decideImport(chosen, there, (one) => one === chosen.name);
      if (decision.kind !== 'install') return;
      if (decision.as === chosen.name && there !== undefined)
        expect([chosen.onConflict, there.digest, there.folder]).toEqual(['overwrite', chosen.replaces, null]);
      if (there === undefined) expect(decision).toMatchObject({ as: chosen.name, outcome: 'installed' });
      expect(decision.outcome === 'renamed').toBe(decision.as !== chosen.name);
    }),
    { numRuns: 1_000 },
  );
});
