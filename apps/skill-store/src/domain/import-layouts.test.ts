import { importPlaces } from '@ambit/contracts';
import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { sortIntoSkills } from './import-layouts.js';

const PLACE = importPlaces['claude-code'];
const part = fc.constantFrom('a', 'b', '.claude', 'skills', '.git', 'node_modules', 'deep', '.hidden', 'x.backup-1');
const path = fc
  .tuple(fc.array(part, { maxLength: 12 }), fc.constantFrom('SKILL.md', 'skill.md', 'more.md', '.DS_Store'))
  .map(([folders, file]) => [...folders, file].join('/'));

it('every file is of one skill or of none, whatever the order, and no skill lies in another', () => {
  fc.assert(
    fc.property(fc.uniqueArray(path, { maxLength: 40 }), (paths) => {
      const sorted = sortIntoSkills(paths, PLACE);
      const placed = [...sorted.skills.flatMap(({ files, dropped }) => [...files.keys(), ...dropped]), ...sorted.loose];
      expect(placed.sort()).toEqual([...paths].sort());
      for (const { folder, files } of sorted.skills) {
        expect(files.get(folder === '' ? 'SKILL.md' : `${folder}/SKILL.md`)).toBe('SKILL.md');
        for (const other of sorted.skills)
          if (other.folder !== folder) expect(folder.startsWith(`${other.folder}/`) || other.folder === '').toBe(false);
      }
      expect(sortIntoSkills([...paths].reverse(), PLACE)).toEqual(sorted);
    }),
    { numRuns: 1_000 },
  );
});

it('where the tool’s own folder is there, a skill elsewhere is none of the tool’s', () => {
  const folders = (paths: readonly string[]) => sortIntoSkills(paths, PLACE).skills.map(({ folder }) => folder);
  expect(folders(['home/.claude/skills/one/SKILL.md', 'home/.codex/skills/two/SKILL.md', 'three/SKILL.md'])).toEqual([
    'home/.claude/skills/one',
  ]);
  expect(folders(['one/SKILL.md', 'group/two/SKILL.md', '.hidden/three/SKILL.md'])).toEqual(['group/two', 'one']);
  expect(folders(['SKILL.md', 'one/SKILL.md'])).toEqual(['']);
  expect(folders([`${'d/'.repeat(10)}SKILL.md`, `${'e/'.repeat(11)}SKILL.md`])).toEqual(['d/'.repeat(10).slice(0, -1)]);
});
