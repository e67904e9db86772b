import type { AskedBack, JsonObject, Policy } from '@ambit/contracts';
import { digestOf } from './canonical.js';
import { isObject } from './arguments.js';

/** The id of one question that a server asks within a call: the same question again, after a gateway was asked twice, is the same. */
export function askedBackId(operationId: string, number: number): string {
  return digestOf([operationId, 'asked-back', number]);
}

/** Who a policy lets ask for completions: every policy of the chain must. One that cannot be read allows nothing. */
export function maySample(policies: readonly (Policy | null)[]): boolean {
  return policies.every((policy) => policy?.serverRequests?.sampling === 'ask');
}

const WORKSPACE = '{workspaceId}';

/** The roots that servers are told of: what every policy of the chain lists, with the session's workspace in place. Without one, a root that needs it is left out. */
export function rootsFor(policies: readonly (Policy | null)[], workspaceId: string | null): { readonly uri: string }[] {
  const [own, ...ancestors] = policies.map((policy) => policy?.serverRequests?.roots ?? []);
  return (own ?? [])
    .filter((root) => ancestors.every((roots) => roots.includes(root)))
    .filter((root) => workspaceId !== null || !root.includes(WORKSPACE))
    .map((root) => ({ uri: root.replaceAll(WORKSPACE, encodeURIComponent(workspaceId ?? '')) }));
}

const MESSAGE_CHARACTERS = 16 * 1024;
const URL_CHARACTERS = 8_192;

/** A server's question as a person is shown it; or why nobody can be asked it, as a sentence. */
export function askedBackOf(kind: 'elicitation' | 'sampling', params: JsonObject, server: string): AskedBack | string {
  if (kind === 'sampling') return { kind, server, params };
  const { mode, message, url, requestedSchema } = params;
  if (typeof message !== 'string' || message === '') return 'a question needs a message';
  const text = message.slice(0, MESSAGE_CHARACTERS);
  if (mode === 'url') {
    const isUrl = typeof url === 'string' && url.length <= URL_CHARACTERS && /^https?:\/\//i.test(url) && URL.canParse(url);
    return isUrl ? { kind: 'url', server, message: text, url } : 'an address that a person is to open is http or https';
  }
  if (mode !== undefined && mode !== 'form') return 'the modes of a question are form and url';
  return isObject(requestedSchema) ? { kind: 'form', server, message: text, requestedSchema } : 'a form needs a schema of its fields';
}
