import { digestOf, isObject, RECORD_BOUNDS } from '@ambit/capability';
import type { JsonObject } from '@ambit/contracts';

/** What one server of a run offers of one kind. */
export interface OfferedBy {
  readonly serverId: string;
  readonly slug: string;
  readonly hash: string;
  readonly items: readonly { readonly template: boolean; readonly definition: JsonObject }[];
}

/** One entry of the joint list, with whose it is. */
export interface Offer {
  readonly serverId: string;
  readonly slug: string;
  readonly definition: JsonObject;
}

/** The entries of several servers in one list, server by server, and its version: equal exactly when the servers and their lists are. */
export function jointOffers(
  servers: readonly OfferedBy[],
  template: boolean,
): { readonly version: string; readonly offers: readonly Offer[] } {
  return {
    version: digestOf([template, servers.map(({ serverId, slug, hash }) => [serverId, slug, hash])], RECORD_BOUNDS),
    offers: servers.flatMap(({ serverId, slug, items }) =>
      items.filter((item) => item.template === template).map(({ definition }) => ({ serverId, slug, definition })),
    ),
  };
}

/**
 * Which servers offer an address: those that list it; where none does, those with a template for it; where none has, all that offer resources,
 * because a server may answer for more than it lists.
 */
export function serversOf(uri: string, servers: readonly OfferedBy[]): string[] {
  const listing = servers.filter(({ items }) => items.some(({ template, definition }) => !template && definition['uri'] === uri));
  if (listing.length > 0) return listing.map(({ serverId }) => serverId);
  const shaped = servers.filter(({ items }) => items.some(({ template, definition }) => template && fits(definition['uriTemplate'], uri)));
  return (shaped.length > 0 ? shaped : servers).map(({ serverId }) => serverId);
}

const EXPRESSION = /\{([+#./;?&]?)[^{}]{1,500}\}/g;
/** What each kind of expression of RFC 6570 may become. */
const BECOMES: Readonly<Record<string, string>> = {
  '': '[^/?#]*',
  '+': '.*',
  '#': '(?:#.*)?',
  '.': '(?:\\.[^/?#]*)?',
  '/': '(?:/[^?#]*)?',
  ';': '(?:;[^/?#]*)?',
  '?': '(?:\\?[^#]*)?',
  '&': '(?:&[^#]*)?',
};
const TEMPLATE_CHARACTERS = 2_000;
const EXPRESSIONS = 16;

/** Tells whether an address may have come from a URI template. A template that is too long to be looked at fits nothing. */
function fits(template: unknown, uri: string): boolean {
  if (typeof template !== 'string' || template.length > TEMPLATE_CHARACTERS || uri.length > TEMPLATE_CHARACTERS) return false;
  const literals: string[] = [];
  let at = 0;
  let pattern = '';
  for (const match of template.matchAll(EXPRESSION)) {
    pattern += escaped(template.slice(at, match.index)) + (BECOMES[match[1] ?? ''] ?? '');
    literals.push(match[0]);
    at = match.index + match[0].length;
  }
  if (literals.length > EXPRESSIONS) return false;
  return new RegExp(`^${pattern}${escaped(template.slice(at))}$`, 's').test(uri);
}

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

/** Reads a stored list; what is no entry of one is left out. */
export function storedOffers(text: string): OfferedBy['items'] {
  const value: unknown = JSON.parse(text);
  if (!Array.isArray(value)) return [];
  return value.flatMap((item: unknown) =>
    isObject(item) && isObject(item['definition']) ? [{ template: item['template'] === true, definition: item['definition'] }] : [],
  );
}
