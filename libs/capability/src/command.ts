import { forEachChild, parse, type Command, type Redirection, type SyntaxNode, type Word } from 'unbash';

/** One program that a shell text starts. */
export interface CommandPart {
  /** The program and its arguments; null where a part of them is only known to the shell (expansions, globs, escapes). */
  readonly words: readonly string[] | null;
  /** The words before the first that only the shell knows. Empty: the program itself is unknown. */
  readonly known: readonly string[];
  /** Variables are set for it, which may change what it does. */
  readonly assigns: boolean;
  /** Its output goes into a file, or its input comes from one or from the text. */
  readonly redirects: boolean;
}

/** What a shell text would start, in the order in which it stands there. */
export interface CommandText {
  readonly parts: readonly CommandPart[];
  /** Exactly one program, all of whose words are known, with nothing else around it. */
  readonly plain: boolean;
  /** It holds more than programs joined by `;`, `&&`, `||`, `|` and line ends: substitutions, loops, functions, jobs. */
  readonly composed: boolean;
}

const COMMAND_MAX = 64 * 1024;
const PARTS_MAX = 256;
// Words written so mean the same in every shell: what needs an escape or an expansion is not among them.
const BARE = /^[A-Za-z0-9_@%+=:,./-]+$/;
const QUOTED = /^"[^"$`\\!]*"$|^'[^']*'$/;
/** Redirections that touch no file of anybody. */
const HARMLESS_TARGETS: ReadonlySet<string> = new Set(['/dev/null', '1', '2']);
const JOINING: ReadonlySet<string> = new Set(['Script', 'Statement', 'Pipeline', 'AndOr', 'Command']);

/** Reads a shell text without running anything; null where it cannot be read whole: then nothing may be concluded from it. */
export function readCommand(text: string): CommandText | null {
  if (text.length > COMMAND_MAX || text.trim() === '' || hasControlCharacter(text)) return null;
  let script: ReturnType<typeof parse>;
  try {
    script = parse(text);
  } catch {
    return null;
  }
  if ((script.errors ?? []).length > 0) return null;
  const parts: CommandPart[] = [];
  let composed = false;
  const pending: SyntaxNode[] = [script];
  for (let node = pending.pop(); node !== undefined; node = pending.pop()) {
    if (isBackground(node) || (isRunning(node) && !JOINING.has(node.type))) composed = true;
    if (node.type === 'Command') parts.push(partOf(node));
    if (parts.length > PARTS_MAX) return null;
    const children: SyntaxNode[] = [];
    forEachChild(node, (child) => {
      children.push(child);
    });
    pending.push(...children.reverse());
  }
  if (parts.length === 0) return null;
  const [first] = parts;
  const plain =
    !composed &&
    parts.length === 1 &&
    first !== undefined &&
    first.words !== null &&
    !first.assigns &&
    !first.redirects &&
    !/[;&|\n]/.test(bare(text));
  return { parts, plain, composed };
}

function hasControlCharacter(text: string): boolean {
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0;
    if ((code < 32 && character !== '\n' && character !== '\t') || code === 127) return true;
  }
  return false;
}

/** The text without what stands in quotes. */
function bare(text: string): string {
  return text.replace(/'[^']*'|"[^"]*"/g, '');
}

function isBackground(node: SyntaxNode): boolean {
  return node.type === 'Statement' && node.background === true;
}

/** Tells the nodes that stand for control flow or run something from those that only spell words. */
function isRunning(node: SyntaxNode): boolean {
  switch (node.type) {
    case 'Word':
    case 'Literal':
    case 'SingleQuoted':
    case 'DoubleQuoted':
    case 'Glob':
    case 'Assignment':
    case 'Redirect':
    case 'FileDescriptor':
      return false;
    default:
      return true;
  }
}

function partOf(command: Command): CommandPart {
  const words = [command.name, ...command.args].filter((word) => word !== undefined);
  const values = words.map((word) => (word.type === 'Word' ? literal(word) : null));
  const unknown = values.indexOf(null);
  const known = values.slice(0, unknown === -1 ? undefined : unknown).filter((value) => value !== null);
  return {
    words: unknown === -1 && known.length > 0 ? known : null,
    known,
    assigns: command.prefix.some((one) => one.type === 'Assignment'),
    redirects: command.redirects.some((one) => !isHarmless(one)),
  };
}

function isHarmless(redirection: Redirection): boolean {
  if (redirection.type !== 'Redirect' || redirection.target === undefined) return false;
  const target = literal(redirection.target);
  if (target === null || !HARMLESS_TARGETS.has(target)) return false;
  return target === '/dev/null' || redirection.operator === '>&';
}

/** What a word means, where every shell reads it alike. */
function literal(word: Word): string | null {
  // As `find -exec` wants them.
  if (word.text === '{}') return word.text;
  if (word.text === '\\;') return ';';
  const parts = word.parts ?? [];
  if (parts.length === 0) return BARE.test(word.text) ? word.text : null;
  let value = '';
  for (const part of parts) {
    if (part.type === 'Literal' && BARE.test(part.text)) value += part.text;
    else if ((part.type === 'SingleQuoted' || part.type === 'DoubleQuoted') && QUOTED.test(part.text)) value += part.text.slice(1, -1);
    else return null;
  }
  return value;
}

// Programs that run what they are given: what they are called says nothing of what happens.
const RUNNERS: ReadonlySet<string> = new Set([
  ...['env', 'xargs', 'nohup', 'time', 'timeout', 'nice', 'ionice', 'stdbuf', 'setsid', 'watch', 'find', 'parallel', 'command', 'builtin'],
  ...[
    'sh',
    'bash',
    'zsh',
    'dash',
    'ksh',
    'fish',
    'eval',
    'exec',
    'source',
    '.',
    'sudo',
    'su',
    'doas',
    'chroot',
    'unshare',
    'flock',
    'script',
  ],
]);

/** Tells whether a program runs what it is given as arguments. */
export function isRunner(program: string): boolean {
  return RUNNERS.has(program.split('/').at(-1) ?? '');
}

const wordsOf = (prefix: string): string[] => prefix.trim().split(/\s+/);
const beginsWith = (words: readonly string[], prefix: readonly string[]): boolean =>
  prefix.length <= words.length && prefix.every((word, index) => word === words[index]);

/**
 * Whether everything that a shell text starts begins with the words of one of the prefixes: what an allowing rule needs. A text that holds anything else,
 * sets variables, redirects into files or is not known word by word is not covered.
 */
export function commandCovered(text: string, prefixes: readonly string[]): boolean {
  const read = readCommand(text);
  if (read === null || read.composed) return false;
  const wanted = prefixes.map(wordsOf);
  return read.parts.every(
    ({ words, assigns, redirects }) => words !== null && !assigns && !redirects && wanted.some((prefix) => beginsWith(words, prefix)),
  );
}

/**
 * Whether a shell text may start something that begins with the words of one of the prefixes: what a denying or asking rule needs. A text that cannot be
 * read, a program that only the shell knows, and the prefix anywhere behind a program that runs others, are caught.
 */
export function commandCaught(text: string, prefixes: readonly string[], depth = 0): boolean {
  const read = readCommand(text);
  if (read === null) return true;
  const wanted = prefixes.map(wordsOf);
  return read.parts.some((part) => {
    const { known } = part;
    // What follows is unknown, so everything that the known words may begin is caught.
    const may = (words: readonly string[], prefix: readonly string[]) =>
      beginsWith(words, prefix) || (part.words === null && beginsWith(prefix, words));
    const [program] = known;
    if (program === undefined) return true;
    const named = [program.split('/').at(-1) ?? '', ...known.slice(1)];
    const spellings = [known, named, named.filter((word, index) => index === 0 || !word.startsWith('-'))];
    if (wanted.some((prefix) => spellings.some((words) => may(words, prefix)))) return true;
    if (!isRunner(program)) return false;
    if (part.words === null || depth > 3) return true;
    return known.some(
      (word, index) =>
        index > 0 &&
        (wanted.some((prefix) => beginsWith(known.slice(index), prefix)) || (/\s/.test(word) && commandCaught(word, prefixes, depth + 1))),
    );
  });
}
