import type { Call } from '@ambit/bus';
import { fault, mcpBroker, type Parsed, type Returns } from '@ambit/contracts';
import { Inject, Injectable } from '@nestjs/common';
import { auditOf } from './audit.js';
import { InstanceService } from './instance.service.js';
import { secretOf, SecretRepository, type SecretRow } from './secret.repository.js';
import { Sealer } from './sealer.js';
import { nameOf, SecretResolver, SecretUnreadable } from './secret.resolver.js';
import { signatureOf } from './signature.js';

/** Variables that are our own credentials: a configuration must not be able to send them anywhere. */
const OURS = /^(AMBIT|NATS|DATABASE|PG|POSTGRES|OPS)_|^PGPASSWORD$/i;

/** Secrets: put in, never given out. */
@Injectable()
export class SecretService {
  constructor(
    @Inject(SecretRepository) private readonly repository: SecretRepository,
    @Inject(SecretResolver) private readonly resolver: SecretResolver,
    @Inject(Sealer) private readonly sealer: Sealer,
    @Inject(InstanceService) private readonly instances: InstanceService,
  ) {}

  async put(input: Parsed<typeof mcpBroker.putSecret>, call: Call): Promise<Returns<typeof mcpBroker.putSecret>> {
    const { projectId, name, from, key, set } = input;
    const before = await this.repository.find({ projectId, name });
    const problem = this.problemOf(input, before);
    if (problem !== undefined) throw fault(mcpBroker.putSecret, 'SECRET_SOURCE', { reason: problem });
    const sealed = this.sealed(input, before);
    const audit = {
      ...auditOf(call, { action: 'secret.put', target: `secret:${nameOf(projectId, name)}`, projectId }),
      at: new Date().toISOString(),
    };
    const row = await this.repository.put({ projectId, name }, { from, key, set, ...sealed }, audit);
    // What runs was started with the old value.
    for (const { id } of before === null ? [] : await this.repository.users({ projectId, name }))
      this.instances.restart(id, `The secret ${name} changed`);
    return secretOf(row);
  }

  /** Only the signature leaves: whoever signs for a secret never holds it. */
  async sign({ projectId, name, text }: Parsed<typeof mcpBroker.signWithSecret>): Promise<Returns<typeof mcpBroker.signWithSecret>> {
    const row = await this.repository.find({ projectId, name });
    if (row === null) throw fault(mcpBroker.signWithSecret, 'SECRET_UNKNOWN', { name });
    try {
      const signature = signatureOf(text, await this.resolver.valueOf(row));
      if (signature === undefined) throw new SecretUnreadable(`The secret ${name} begins with whsec_ and holds no key in base64 behind it`);
      return { signature };
    } catch (error) {
      if (error instanceof SecretUnreadable) throw fault(mcpBroker.signWithSecret, 'SECRET_UNREADABLE', { reason: error.message });
      throw error;
    }
  }

  async list(input: Parsed<typeof mcpBroker.listSecrets>): Promise<Returns<typeof mcpBroker.listSecrets>> {
    const [projectId, name] = input.cursor?.split('/') ?? [];
    const after = projectId === undefined || name === undefined ? undefined : { projectId, name };
    const rows = await this.repository.list({ projectId: input.projectId, set: input.set }, { after, limit: input.limit });
    const last = rows.length === input.limit ? rows.at(-1) : undefined;
    return { items: rows.map(secretOf), ...(last === undefined ? {} : { cursor: nameOf(last.projectId, last.name) }) };
  }

  async delete({ projectId, name }: Parsed<typeof mcpBroker.deleteSecret>, call: Call): Promise<Returns<typeof mcpBroker.deleteSecret>> {
    const audit = {
      ...auditOf(call, { action: 'secret.delete', target: `secret:${nameOf(projectId, name)}`, projectId }),
      at: new Date().toISOString(),
    };
    const { deleted, users } = await this.repository.remove({ projectId, name }, audit);
    if (users.length > 0) throw fault(mcpBroker.deleteSecret, 'SECRET_IN_USE', { servers: users.map(({ slug }) => slug) });
    return { deleted };
  }

  private problemOf({ from, key, value }: Parsed<typeof mcpBroker.putSecret>, before: SecretRow | null): string | undefined {
    if (from === 'store') {
      if (key !== null) return 'A secret of the store has no key; give its value';
      if (this.sealer.keyId === undefined)
        return 'No sealing key is configured here (AMBIT_SEALING_KEY), so values cannot be stored; use env or file';
      return value === undefined && (before?.sealed ?? null) === null ? 'A new secret of the store needs its value' : undefined;
    }
    if (value !== undefined) return `A secret from ${from} takes no value: it stands elsewhere`;
    if (key === null || key === '') return `A secret from ${from} needs the key it stands under`;
    return from === 'env' && OURS.test(key) ? `The variable ${key} is one of this system’s own` : undefined;
  }

  private sealed(
    { projectId, name, from, value }: Parsed<typeof mcpBroker.putSecret>,
    before: SecretRow | null,
  ): Pick<SecretRow, 'sealed' | 'keyId'> {
    if (from !== 'store' || this.sealer.keyId === undefined) return { sealed: null, keyId: null };
    if (value === undefined) return { sealed: before?.sealed ?? null, keyId: before?.keyId ?? null };
    return this.sealer.close(value, nameOf(projectId, name));
  }
}
