import { isObject, sha256Hex } from '@ambit/capability';
import { z } from 'zod';
import type { Setting } from './manifest.js';
import { sentence } from './package-files.js';
import { ServerTransport } from './server-transport.js';

const Scalar = z.union([z.string(), z.number(), z.boolean()]).transform(String);
const Loose = z.looseObject({
  type: z.string().optional(),
  transport: z.string().optional(),
  command: z.string().optional(),
  args: z.array(Scalar).max(256).default([]),
  env: z.record(z.string(), Scalar).default({}),
  url: z.string().optional(),
  headers: z.record(z.string(), Scalar).default({}),
});
const TYPES: Readonly<Record<string, 'stdio' | 'streamable-http' | 'sse'>> = {
  stdio: 'stdio',
  http: 'streamable-http',
  'streamable-http': 'streamable-http',
  streamableHttp: 'streamable-http',
  sse: 'sse',
};

/** What the words of a format mean here, and whose settings are asked for. */
export interface Vocabulary {
  readonly pluginId: string;
  /** By word: what stands for it, `${PLUGIN_ROOT}` for instance. */
  readonly words: ReadonlyMap<string, string>;
  /** Titles of settings that the manifest declares, by word. */
  readonly titles?: ReadonlyMap<string, string>;
}

export type LooseServer =
  | { readonly transport: ServerTransport; readonly settings: readonly Setting[]; readonly told: readonly string[] }
  | { readonly problem: string };

/** Reads a server as other clients’ configurations write it: their words are replaced, and what only a person can give becomes a secret. */
export function looseServer(value: unknown, vocabulary: Vocabulary): LooseServer {
  if (!isObject(value)) return { problem: 'a server is an object' };
  const told = Object.keys(value)
    .filter((field) => PERMISSIONS.has(field))
    .map((field) => `${field}: ${NO_PERMISSION}`);
  const loose = Loose.safeParse(value);
  if (!loose.success) return { problem: sentence(loose.error) };
  const { command, args, env, url, headers } = loose.data;
  const named = loose.data.type ?? loose.data.transport ?? (command === undefined ? 'http' : 'stdio');
  const type = Object.hasOwn(TYPES, named) ? TYPES[named] : undefined;
  if (type === undefined) return { problem: `its transport "${named.slice(0, 40)}" is not one that Ambit speaks` };
  const filling = new Filling(vocabulary);
  const written =
    type === 'stdio'
      ? { type, command: inPackage(filling.text(command ?? '')), args: args.map((one) => filling.text(one)), env: filling.values(env) }
      : { type, url: filling.text(url ?? ''), headers: filling.values(headers) };
  if (filling.missing.size > 0) return { problem: `nothing says what ${[...filling.missing].slice(0, 5).join(', ')} stands for` };
  const transport = ServerTransport.safeParse(written);
  if (!transport.success) return { problem: sentence(transport.error) };
  const settings = [...filling.settings.values()];
  return {
    transport: transport.data,
    settings,
    told: [...told, ...settings.map(({ key, secret }) => `${key}: store it as the secret ${secret}`)],
  };
}

/** The secret that a setting of a plugin is stored as: no other plugin can have one of this name. */
function secretOf(pluginId: string, key: string): string {
  const plain = `${pluginId}-${key}`.toLowerCase().replace(/[^a-z0-9]+/g, '-');
  return `plugin-${plain.slice(0, 46).replace(/-+$/, '')}-${sha256Hex(JSON.stringify([pluginId, key])).slice(0, 8)}`;
}

const NO_PERMISSION = 'what may be called without asking is for an agent’s rules to say; it is left out';
/** What others write into a server’s configuration to have its tools called without asking. */
const PERMISSIONS: ReadonlySet<string> = new Set(['autoApprove', 'alwaysAllow', 'trust']);

/** A server’s configuration has no say in permissions: it is taken without what it says of them. */
export function withoutPermissions(value: unknown, leftOut: (sentence: string) => void): unknown {
  if (!isObject(value)) return value;
  for (const field of Object.keys(value)) if (PERMISSIONS.has(field)) leftOut(`${field}: ${NO_PERMISSION}`);
  return Object.fromEntries(Object.entries(value).filter(([field]) => !PERMISSIONS.has(field)));
}

const ROOT = '${PLUGIN_ROOT}/';
const inPackage = (command: string): string => (command.startsWith(ROOT) ? `./${command.slice(ROOT.length)}` : command);
const WORD = /\$\{([^}]*)\}/g;
const ONE_WORD = /^\$\{([^}]*)\}$/;
const KEPT: ReadonlySet<string> = new Set(['PLUGIN_ROOT', 'PLUGIN_DATA']);

/** Replaces words in the texts of one server and remembers what nobody has said. */
class Filling {
  readonly missing = new Set<string>();
  readonly settings = new Map<string, Setting>();
  constructor(private readonly vocabulary: Vocabulary) {}

  text(text: string): string {
    return text.replace(WORD, (whole, word: string) => {
      const known = this.known(word);
      if (known === undefined) this.missing.add(whole.slice(0, 100));
      return known ?? whole;
    });
  }

  /** Of an environment or of headers: a value that is one unknown word is a person’s to give. */
  values(entries: Readonly<Record<string, string>>): Record<string, string | { secret: string }> {
    return Object.fromEntries(
      Object.entries(entries).map(([name, text]) => {
        const word = ONE_WORD.exec(text)?.[1];
        return [name, word === undefined || this.known(word) !== undefined ? this.text(text) : { secret: this.setting(word) }];
      }),
    );
  }

  private known(word: string): string | undefined {
    if (KEPT.has(word)) return `\${${word}}`;
    const [name = word, fallback] = word.split(':-', 2);
    return this.vocabulary.words.get(name) ?? fallback;
  }

  private setting(word: string): string {
    const secret = secretOf(this.vocabulary.pluginId, word);
    const title = this.vocabulary.titles?.get(word) ?? word;
    this.settings.set(word, { key: word.slice(0, 200), secret, title: title.slice(0, 200) });
    return secret;
  }
}
