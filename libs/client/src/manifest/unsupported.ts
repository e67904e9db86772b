import type { Problem } from './problem.js';

/** Parts of ambit.yaml that people may know, and that this version does not serve. */
const SECTIONS: Readonly<Record<string, string>> = { retention: 'retention rules' };

/** Names what this version does not serve, and takes it out, so that the rest is still looked at. */
export function takeOutUnsupported(document: unknown): { readonly rest: unknown; readonly problems: readonly Problem[] } {
  if (!isMap(document)) return { rest: document, problems: [] };
  const problems: Problem[] = [];
  const rest: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(document)) {
    const what = SECTIONS[name];
    if (what === undefined) rest[name] = value;
    else problems.push({ path: [name], text: `${what} are not supported by this version of Ambit; take the section out` });
  }
  if (rest['plugins'] !== undefined) rest['plugins'] = withoutPublisher(rest['plugins'], problems);
  return { rest, problems };
}

function withoutPublisher(entries: unknown, problems: Problem[]): unknown {
  if (!isMap(entries)) return entries;
  return Object.fromEntries(
    Object.entries(entries).map(([name, entry]) => {
      if (!isMap(entry) || !Object.hasOwn(entry, 'publisher')) return [name, entry];
      const { publisher: _taken, ...kept } = entry;
      problems.push({
        path: ['plugins', name, 'publisher'],
        text: 'a publisher’s trust is not supported by this version of Ambit; take the field out',
      });
      return [name, kept];
    }),
  );
}

function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
