import { isRunner, readCommand } from './command.js';

/** How much harm a call could do, from a rule-based look at it. */
export type Risk = 'low' | 'medium' | 'high' | 'critical';

const ORDER: readonly Risk[] = ['low', 'medium', 'high', 'critical'];

/** The greater of two risks. */
export function greaterRisk(left: Risk, right: Risk): Risk {
  return ORDER.indexOf(left) >= ORDER.indexOf(right) ? left : right;
}

// Programs that only look, as long as they are not pointed at paths or told to run or write something.
const LOOKING = new Set(['ls', 'pwd', 'echo', 'cat', 'head', 'tail', 'wc', 'grep', 'diff', 'sort']);
const NETWORK = new Set(['curl', 'wget', 'nc', 'ncat', 'netcat', 'telnet', 'ssh', 'scp', 'socat']);
const CHANGING = new Set([
  'rm',
  'rmdir',
  'mv',
  'chmod',
  'chown',
  'sudo',
  'su',
  'doas',
  'docker',
  'podman',
  'kubectl',
  'dd',
  'mkfs',
  'kill',
  'killall',
  'pkill',
  'shutdown',
  'reboot',
  'crontab',
  'systemctl',
]);
// Options with which these programs still only look: no file that is written, read from a list, or reached through a link, and no other program.
const SHORT_OPTION = /^-[A-EG-QU-Za-eg-np-z0-9]*$/;
const LONG_OPTION =
  /^--($|(all|almost-all|brief|bytes|color|context|count|exclude|exclude-dir|fixed-strings|human-readable|ignore-case|include|key|line-number|lines|long|numeric-sort|recursive|reverse|size|time|unified|unique|word-regexp|words)($|=))/;
/** Somewhere else than at or below the folder that a command runs in, or a name that is kept out of sight. */
const ELSEWHERE = /^[/~]|(^|[/=:,])\.[^./]|(^|[/=:,])\.\.($|\/)|[=:,][/~]|^\.$/;

/** The command without what stands in single quotes, where the shell reads nothing. */
function unquoted(command: string): string {
  return command.replace(/'[^']*'/g, "''");
}

/** Rates a shell command by its words; what cannot be read is critical, never harmless. */
export function commandRisk(command: string): Risk {
  const trimmed = command.trim();
  if (trimmed === '') return 'critical';
  const visible = unquoted(trimmed);
  if (/[;|&<>\n\r`]|\$\(|\$\{/.test(visible) || visible.replace(/''/g, '').includes("'")) return 'critical';
  const words = visible.split(/\s+/);
  while (/^[A-Za-z_][A-Za-z0-9_]*=/.test(words[0] ?? '')) words.shift();
  const program = (words[0] ?? '').split('/').at(-1) ?? '';
  const rest = words.slice(1);
  if (program === '' || NETWORK.has(program)) return 'critical';
  if (program === 'rm' && rest.some((word) => /^-[a-z]*[rRf]/.test(word) || word === '--recursive' || word === '--force'))
    return 'critical';
  if (program === 'chmod' && rest.some((word) => /^(0?777|a\+w|o\+w|\+w)$/.test(word))) return 'critical';
  if (CHANGING.has(program) || isRunner(program)) return 'high';
  return isLook(trimmed) ? 'low' : 'medium';
}

/** One program that looks, every word of it known, pointed at nothing outside its folder and at nothing hidden. */
function isLook(command: string): boolean {
  const read = readCommand(command);
  const words = read?.plain === true ? read.parts[0]?.words : undefined;
  const [program, ...rest] = words ?? [];
  if (program === undefined || !LOOKING.has(program)) return false;
  return rest.every((word) => (word.startsWith('-') ? SHORT_OPTION.test(word) || LONG_OPTION.test(word) : true) && !ELSEWHERE.test(word));
}
