import { qualifiedToolName } from '@ambit/capability';
import type { Json } from './json-rpc.js';
import type { Naming } from './shown-tools.js';

/** A prompt, resource or template of one server, as the broker lists it. */
export interface Offer {
  readonly serverId: string;
  readonly slug: string;
  readonly definition: Readonly<Json>;
}
/** The same as a client is shown it. */
export interface ShownOffer extends Offer {
  /** What the client calls it. */
  readonly name: string;
  /** What its server calls it. */
  readonly own: string;
}

const ELSEWHERE = 'ambit+mcp://';

/** Prompts by the names that a client is shown: as for tools, but nothing of ours competes for a plain name. */
export function shownPrompts(offers: readonly Offer[], { names, first }: Naming): ShownOffer[] {
  const named = offers.flatMap((offer) => (typeof offer.definition['name'] === 'string' ? [{ offer, own: offer.definition['name'] }] : []));
  return named.map(({ offer, own }) => {
    const rivals = named.filter((one) => one.own === own);
    const isPlain = names === 'plain' && (rivals.length === 1 || offer.slug === first);
    const name = isPlain ? own : qualifiedToolName(offer.slug, own);
    return { ...offer, own, name, definition: { ...offer.definition, name } };
  });
}

/**
 * Resources by their addresses. An address is a server's own, and stays as it is where no other server has it; of several that do, that of the server
 * which comes first keeps it, and each other one is shown at an address that names its server.
 */
export function shownResources(offers: readonly Offer[], { first }: Naming): ShownOffer[] {
  const addressed = offers.flatMap((offer) =>
    typeof offer.definition['uri'] === 'string' ? [{ offer, own: offer.definition['uri'] }] : [],
  );
  return addressed.map(({ offer, own }) => {
    const rivals = addressed.filter((one) => one.own === own);
    const name = rivals.length === 1 || offer.slug === first ? own : addressAt(offer.slug, own);
    return { ...offer, own, name, definition: { ...offer.definition, uri: name } };
  });
}

const addressAt = (slug: string, uri: string): string => `${ELSEWHERE}${slug}/${encodeURIComponent(uri)}`;

/** The server that an address of ours names, and the address there; undefined where it is no address of ours. */
export function serverIn(uri: string): { readonly slug: string; readonly uri: string } | undefined {
  const found = /^ambit\+mcp:\/\/([a-z0-9][a-z0-9-]{0,62})\/(.+)$/.exec(uri);
  if (found?.[1] === undefined || found[2] === undefined) return undefined;
  try {
    return { slug: found[1], uri: decodeURIComponent(found[2]) };
  } catch {
    return undefined;
  }
}
