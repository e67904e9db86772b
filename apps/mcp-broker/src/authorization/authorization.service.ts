import type { Call } from '@ambit/bus';
import { fault, mcpBroker, type Parsed, type Returns, type ServerAuthorization } from '@ambit/contracts';
import { Inject, Injectable } from '@nestjs/common';
import { auditOf } from '../audit.js';
import { InstanceService } from '../instance.service.js';
import { ServerRepository } from '../server.repository.js';
import type { ServerRow } from '../server.view.js';
import { authorizationView, credentialView } from './authorization.view.js';
import { CredentialRepository } from './credential.repository.js';

/** How servers and subjects stand, and the end of what they were given. */
@Injectable()
export class AuthorizationService {
  constructor(
    @Inject(ServerRepository) private readonly servers: ServerRepository,
    @Inject(CredentialRepository) private readonly credentials: CredentialRepository,
    @Inject(InstanceService) private readonly instances: InstanceService,
  ) {}

  async list({
    serverId,
    cursor,
    limit,
  }: Parsed<typeof mcpBroker.listAuthorizations>): Promise<Returns<typeof mcpBroker.listAuthorizations>> {
    const server = await this.servers.find({ id: serverId });
    if (server === null) throw fault(mcpBroker.listAuthorizations, 'SERVER_UNKNOWN');
    const now = new Date();
    const [rows, signingIn] = await Promise.all([
      this.credentials.list(serverId, { after: cursor, limit }),
      this.credentials.signingIn(serverId, now),
    ]);
    const last = rows.length === limit ? rows.at(-1) : undefined;
    return {
      items: rows.map((row) => credentialView(row, server, { now, isSigningIn: signingIn.has(row.subject) })),
      ...(last === undefined ? {} : { cursor: last.subject }),
    };
  }

  async remove(
    { serverId, subject }: Parsed<typeof mcpBroker.removeAuthorization>,
    call: Call,
  ): Promise<Returns<typeof mcpBroker.removeAuthorization>> {
    const server = await this.servers.find({ id: serverId });
    if (server === null) throw fault(mcpBroker.removeAuthorization, 'SERVER_UNKNOWN');
    const audit = auditOf(call, { action: 'authorization.remove', target: `server:${serverId}/${subject}`, projectId: server.projectId });
    const removed = await this.credentials.remove(subject, serverId, audit);
    await this.instances.endOf(server, subject, 'The credentials were removed');
    return { removed: removed.length > 0 };
  }

  /** Its tokens first, then what runs with them: nothing can be started in between. */
  async erase({ principal }: Parsed<typeof mcpBroker.erasePrincipal>, call: Call): Promise<Returns<typeof mcpBroker.erasePrincipal>> {
    const audit = auditOf(call, { action: 'principal.erase', target: `principal:${principal}`, projectId: null });
    const serverIds = await this.credentials.remove(principal, undefined, audit);
    const running = new Set([...serverIds, ...(await this.servers.serversOf(principal))]);
    await Promise.all([...running].map((id) => this.instances.endOf({ id }, principal, 'The principal was removed')));
    return { credentials: serverIds.length };
  }

  /** How servers stand as a whole, by their ids. */
  async of(rows: readonly ServerRow[]): Promise<ReadonlyMap<string, ServerAuthorization>> {
    const now = new Date();
    const facts = await this.credentials.facts(
      rows.map(({ id }) => id),
      now,
    );
    return new Map(rows.map((row) => [row.id, authorizationView(row, facts, now)]));
  }
}
