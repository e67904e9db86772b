import { chmod, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { keyFiles, readOrMakeSecret } from '@ambit/identity';
import { z } from 'zod';

/** The repository: this file is `apps/stack/{src,dist}/stack-folder`. */
export const repository = fileURLToPath(new URL('../../..', import.meta.url));

const SECRET_BYTES = 32;
const Ports = z.record(z.string(), z.int());

/** Everything that the stack keeps, below `.ambit` unless `AMBIT_HOME` says otherwise. */
export class StackFolder {
  readonly root: string;
  readonly bin: string;
  readonly keys: string;
  readonly nats: string;
  readonly postgres: string;
  readonly data: string;
  /** Of Node.js, for the services. */
  readonly compiled: string;
  readonly logs: string;
  readonly stackFile: string;
  readonly tokenFile: string;

  constructor(root: string) {
    this.root = root;
    this.bin = join(root, 'bin');
    this.keys = join(root, 'keys');
    this.nats = join(root, 'nats');
    this.postgres = join(root, 'postgres');
    this.data = join(root, 'data');
    this.compiled = join(root, 'compiled');
    this.logs = join(root, 'logs');
    this.stackFile = join(root, 'stack.json');
    this.tokenFile = join(this.keys, keyFiles.bootstrapToken);
  }

  /** Makes the folders; the logs of the start before stay beside the new ones. */
  async prepare(): Promise<void> {
    await mkdir(this.root, { recursive: true });
    // As root, PostgreSQL runs as another user, who must pass through here; what is secret is closed by itself.
    await chmod(this.root, 0o711);
    for (const folder of [this.bin, this.keys, this.data]) await mkdir(folder, { recursive: true, mode: 0o700 });
    const previous = `${this.logs}.previous`;
    await rm(previous, { recursive: true, force: true });
    await rename(this.logs, previous).catch(() => undefined);
    await mkdir(this.logs, { recursive: true, mode: 0o700 });
  }

  /** A secret of 32 random bytes, made by `ambit init` or, with a NATS of the user's own, here. */
  async secret(name: typeof keyFiles.bootstrapToken | typeof keyFiles.sealingKey | typeof keyFiles.edgeKey): Promise<string> {
    return readOrMakeSecret(join(this.keys, name), SECRET_BYTES);
  }

  /** Ports of the start before, so that addresses that people noted stay good. */
  async ports(): Promise<Readonly<Record<string, number>>> {
    const text = await readFile(join(this.root, 'ports.json'), 'utf8').catch(() => '{}');
    return Ports.catch({}).parse(JSON.parse(text));
  }

  async rememberPorts(ports: Readonly<Record<string, number>>): Promise<void> {
    await writeFile(join(this.root, 'ports.json'), `${JSON.stringify(ports, null, 2)}\n`);
  }
}
