import { digestOf } from '@ambit/capability';
import type { Transport } from '@ambit/contracts';

/** The parts of a transport that make it another server when they change. Secrets stand in it by reference, so rotating one changes nothing. */
function identityOf(transport: Transport): unknown {
  switch (transport.type) {
    case 'stdio':
      return {
        type: transport.type,
        command: transport.command,
        args: transport.args,
        env: transport.env,
        package: transport.package?.digest,
      };
    case 'http':
    case 'sse':
      return {
        type: transport.type,
        url: normalUrl(transport.url),
        headers: transport.headers,
        ...(transport.authorization === undefined ? {} : { authorization: transport.authorization }),
      };
    case 'inmemory':
      return { type: transport.type, name: transport.name };
  }
}

/** One spelling for each URL: the parser's own, without a fragment, which no server ever sees. */
function normalUrl(url: string): string {
  const parsed = new URL(url);
  parsed.hash = '';
  return parsed.href;
}

/** What a pin compares beside the generation: how the server is reached, without anything secret. 64 hexadecimal digits. */
export function bindingHash(transport: Transport): string {
  switch (transport.type) {
    case 'stdio':
      return digestOf({ type: transport.type, command: transport.command, authorization: 'none' });
    case 'http':
    case 'sse':
      return digestOf({ type: transport.type, url: normalUrl(transport.url), authorization: transport.authorization?.type ?? 'none' });
    case 'inmemory':
      return digestOf({ type: transport.type, name: transport.name, authorization: 'none' });
  }
}

/** The generation after a change: one more exactly when the server is another one now. */
export function nextGeneration(
  before: { readonly transport: Transport; readonly configGeneration: number } | undefined,
  after: Transport,
): number {
  if (before === undefined) return 1;
  return digestOf(identityOf(before.transport)) === digestOf(identityOf(after)) ? before.configGeneration : before.configGeneration + 1;
}
