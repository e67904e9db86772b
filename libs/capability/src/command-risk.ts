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
// Programs that run what they are given as arguments: the first word says nothing of what happens.
const RUNNING_OTHERS = new Set([
  'env',
  'xargs',
  'nohup',
  'time',
  'timeout',
  'sh',
  'bash',
  'zsh',
  'dash',
  'eval',
  'exec',
  'find',
  'nice',
  'watch',
]);
const WRITING_OPTION = /^(-o|--output|-i|--in-place|--files0-from)/;

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
  if (CHANGING.has(program) || RUNNING_OTHERS.has(program)) return 'high';
  if (words.length !== visible.split(/\s+/).length) return 'medium';
  if (!LOOKING.has(program) || program !== words[0]) return 'medium';
  return rest.some((word) => /^["'\\]*[/~]|\.\.|\$|(^|\/)["'\\]*\.[^./]/.test(word) || WRITING_OPTION.test(word)) ? 'medium' : 'low';
}
