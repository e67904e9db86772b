// The MCP Inspector's command line against the edge: it lists and judges the tools, calls one, and reads every file of every skill against its digest.
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const folder = fileURLToPath(new URL('./inspector/', import.meta.url));
const program = join(folder, 'node_modules', '.bin', 'mcp-inspector');
const run = promisify(execFile);
const WITHIN_MS = 60_000;

const ASKED = [
  { name: 'tools/list --strict', args: ['--method', 'tools/list', '--strict'], shows: /"test_simple_text"/ },
  {
    name: 'tools/call',
    args: ['--method', 'tools/call', '--tool-name', 'test_simple_text'],
    shows: /This is a simple text response for testing\./,
  },
  { name: 'skills/list --verify', args: ['--method', 'skills/list', '--verify'], shows: /abacus/ },
];

/** What the Inspector says of what stands behind an address. Its exit code is its verdict; that it showed what is there is ours. */
export async function inspect({ name: behind, url }, say) {
  if (!existsSync(program)) {
    say('installing the MCP Inspector');
    // Not `ci`, which stops at an optional package of another platform that a registry does not have; the versions are the lock's all the same.
    await run('npm', ['install', '--no-save', '--prefer-offline', '--no-audit', '--no-fund'], { cwd: folder });
  }
  const home = mkdtempSync(join(tmpdir(), 'ambit-inspector-'));
  const results = [];
  for (const { name, args, shows } of ASKED) {
    const options = { timeout: WITHIN_MS, maxBuffer: 16 * 1024 * 1024, env: { ...process.env, HOME: home } };
    const { output, code } = await run(program, ['--cli', url, ...args], options)
      .then(({ stdout, stderr }) => ({ output: stdout + stderr, code: 0 }))
      .catch((error) => ({ output: `${error.stdout ?? ''}${error.stderr ?? ''}`, code: error.code ?? 1 }));
    const ok = code === 0 && shows.test(output);
    results.push({ suite: `inspector ${name}`, against: `the edge in front of ${behind}`, exit: code, ok });
    say(`inspector ${name} in front of ${behind}: ${ok ? 'ok' : `exit ${code}\n${output.slice(0, 2_000)}`}`);
  }
  rmSync(home, { recursive: true, force: true });
  return results;
}
