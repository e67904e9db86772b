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
  return { rest, problems };
}

function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
