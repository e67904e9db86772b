/** The name in a Host header, lower-case and without its port; undefined where it has none. */
function nameIn(address: string): string | undefined {
  return URL.canParse(address) ? new URL(address).hostname.toLowerCase() : undefined;
}

/** Whether a request was sent to one of our names: a page of somebody else's that had its own name resolve to us did not. */
export function isOurHost(host: string | undefined, names: readonly string[]): boolean {
  const name = host === undefined ? undefined : nameIn(`http://${host}`);
  return name !== undefined && names.includes(name);
}

/** Whether whoever sent it is no web page, or one that may. A page without a name, which says `null`, may not. */
export function isOurOrigin(origin: string | undefined, names: readonly string[]): boolean {
  if (origin === undefined || origin === '') return true;
  const name = nameIn(origin);
  return name !== undefined && name !== '' && names.includes(name);
}
