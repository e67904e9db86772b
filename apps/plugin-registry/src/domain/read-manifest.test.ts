import { SourceFormat } from '@ambit/contracts';
import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { filesOf, SAMPLES } from '../../../../test/system/packages.js';
import { PackageRefused, type PackageFiles } from './package-files.js';
import { readManifest } from './read-manifest.js';

const HERE = { platform: 'linux', arch: 'x64', version: '0.1.0' };
const read = (files: Readonly<Record<string, string>>) => {
  const found: PackageFiles = { paths: Object.keys(files), texts: new Map(Object.entries(files)), here: HERE };
  return readManifest(found);
};

/** Any place of a JSON value that is an object or a list, with something else put there. */
function replaced(value: unknown, at: readonly number[], by: unknown): unknown {
  const [first, ...rest] = at;
  if (first === undefined || typeof value !== 'object' || value === null) return by;
  const entries = Object.entries(value);
  const chosen = entries[first % Math.max(1, entries.length)]?.[0];
  const changed = entries.map(([key, one]) => [key, key === chosen ? replaced(one, rest, by) : one] as const);
  return Array.isArray(value) ? changed.map(([, one]) => one) : Object.fromEntries(changed);
}

it('knows each format and makes one record of it', () => {
  for (const format of SourceFormat.options) expect(read(filesOf(format))).toMatchObject({ sourceFormat: format, undeclared: [] });
});

it('gives a record or refuses, whatever stands in a manifest, and never names what lies outside', () => {
  const change = fc.record({
    format: fc.constantFrom(...SourceFormat.options),
    at: fc.array(fc.nat(20), { minLength: 1, maxLength: 4 }),
    by: fc.oneof(
      fc.jsonValue({ maxDepth: 3 }),
      fc.constantFrom(
        '../x',
        './../x',
        '/etc',
        'C:\\x',
        '${__dirname}/../x',
        '${CLAUDE_PLUGIN_ROOT}/../../x',
        '${HOME}',
        { command: './a/../../b' },
        [],
      ),
    ),
  });
  fc.assert(
    fc.property(change, ({ format, at, by }) => {
      const { mark, manifest } = SAMPLES[format];
      const files = { ...filesOf(format), [mark]: JSON.stringify(replaced(manifest, at, by)) };
      let found: ReturnType<typeof readManifest>;
      try {
        found = read(files);
      } catch (error) {
        expect(error).toBeInstanceOf(PackageRefused);
        return;
      }
      for (const folder of found.skills) expect(Object.keys(files)).toContain(`${folder}/SKILL.md`);
      for (const { transport } of found.servers) {
        if (transport.type !== 'stdio') continue;
        expect(transport.command).toMatch(/^[^/\\\s]+$|^\.\/[^\\\s]+$/);
        expect(transport.command.split('/')).not.toContain('..');
      }
    }),
    { numRuns: 1_000 },
  );
});
