import type { Transport } from '@ambit/contracts';
import { CONFIG } from '@ambit/service';
import { Inject, Injectable } from '@nestjs/common';
import { readFile, realpath } from 'node:fs/promises';
import { resolve, sep } from 'node:path';
import type { BrokerConfig } from './config.js';
import { isHeaderValue } from './domain/put-server.js';
import { Sealer } from './sealer.js';
import { SecretRepository, type SecretRow } from './secret.repository.js';

const LARGEST_FILE = 64 * 1024;
export const nameOf = (projectId: string, name: string): string => `${projectId}/${name}`;

/** Why a secret has no value here, in one sentence. */
export class SecretUnreadable extends Error {
  override readonly name = 'SecretUnreadable';
}

/** Values of secrets, for the start of a server and for signatures, and nothing else. */
@Injectable()
export class SecretResolver {
  constructor(
    @Inject(SecretRepository) private readonly repository: SecretRepository,
    @Inject(Sealer) private readonly sealer: Sealer,
    @Inject(CONFIG) private readonly config: BrokerConfig,
  ) {}

  /** A transport's variables or headers with their secrets in place. Throws an Error with a sentence that names the secret, never its value. */
  async resolve(projectId: string, transport: Transport): Promise<Record<string, string>> {
    const values = transport.type === 'stdio' ? transport.env : transport.type === 'inmemory' ? {} : transport.headers;
    const resolved: Record<string, string> = {};
    for (const [field, value] of Object.entries(values)) {
      const text = typeof value === 'string' ? value : await this.named(projectId, value.secret);
      if (transport.type !== 'stdio' && !isHeaderValue(text))
        throw new Error(`The value of the header ${field} holds line breaks or characters that no header may hold`);
      resolved[field] = text;
    }
    return resolved;
  }

  /** The value of one secret. Throws {@link SecretUnreadable} with a sentence that names the secret, never its value. */
  async valueOf(row: SecretRow): Promise<string> {
    const { projectId, name } = row;
    if (row.from === 'env')
      return present(process.env[row.key ?? ''], `The secret ${name} stands in the variable ${row.key ?? ''}, which is not set here`);
    if (row.from === 'file') return this.fileOf(name, row.key ?? '');
    const sealed = present(row.sealed, `The secret ${name} has no value yet`);
    if (!this.sealer.has(row.keyId))
      throw new SecretUnreadable(`The secret ${name} is sealed with the key ${row.keyId ?? 'none'}, which this process does not have`);
    return this.sealer.open({ sealed, keyId: row.keyId }, nameOf(projectId, name));
  }

  /** The value of a secret by its name. Throws {@link SecretUnreadable} with a sentence. */
  async named(projectId: string, name: string): Promise<string> {
    const row = await this.repository.find({ projectId, name });
    if (row === null) throw new SecretUnreadable(`The secret ${name} does not exist`);
    return this.valueOf(row);
  }

  private async fileOf(name: string, key: string): Promise<string> {
    try {
      const folder = await realpath(this.config.AMBIT_SECRETS_DIR);
      const path = await realpath(resolve(folder, key));
      // A link may lead out of the folder; what counts is where it ends.
      if (!path.startsWith(folder + sep)) throw new Error('outside');
      const bytes = await readFile(path);
      if (bytes.length > LARGEST_FILE) throw new Error('too large');
      return bytes.toString('utf8').replace(/\r?\n$/, '');
    } catch {
      throw new SecretUnreadable(
        `The secret ${name} stands in the file ${key} of the folder of secrets, which is not there or cannot be read`,
      );
    }
  }
}

function present<T>(value: T | null | undefined, problem: string): T {
  if (value === null || value === undefined || value === '') throw new SecretUnreadable(problem);
  return value;
}
