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
  rest['servers'] = without(
    rest['servers'],
    { section: 'servers', field: 'auth', what: 'authorisation of servers', instead: ', or send a secret in headers' },
    problems,
  );
  rest['plugins'] = without(
    rest['plugins'],
    { section: 'plugins', field: 'publisher', what: 'a publisher’s trust', instead: '' },
    problems,
  );
  for (const section of ['servers', 'plugins']) if (rest[section] === undefined) delete rest[section];
  return { rest, problems };
}

interface Field {
  readonly section: string;
  readonly field: string;
  readonly what: string;
  readonly instead: string;
}

function without(entries: unknown, { section, field, what, instead }: Field, problems: Problem[]): unknown {
  if (!isMap(entries)) return entries;
  return Object.fromEntries(
    Object.entries(entries).map(([name, entry]) => {
      if (!isMap(entry) || !Object.hasOwn(entry, field)) return [name, entry];
      const { [field]: _taken, ...kept } = entry;
      problems.push({
        path: [section, name, field],
        text: `${what} is not supported by this version of Ambit; take the field out${instead}`,
      });
      return [name, kept];
    }),
  );
}

function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
