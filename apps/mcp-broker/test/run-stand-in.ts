import { Responder, silentLog } from '@ambit/bus';
import { canonicalRecord, sha256Hex, type SnapshotRecord } from '@ambit/capability';
import { fault, Policy, sessionService, type Authority } from '@ambit/contracts';
import type { NatsConnection } from '@nats-io/nats-core';
import { randomUUID } from 'node:crypto';

export interface StandIn {
  /** A run whose snapshot has these servers and skills. */
  run(
    servers: SnapshotRecord['servers'],
    more?: { readonly authority?: Partial<Authority>; readonly skills?: SnapshotRecord['skills'] },
  ): Authority;
  close(): Promise<void>;
}

/** session-service as a peer on the bus: says what its runs may do and what their snapshots hold. */
export function startRuns(connection: NatsConnection): StandIn {
  const responder = new Responder({ connection, log: silentLog });
  const authorities = new Map<string, Authority>();
  const snapshots = new Map<string, string>();
  responder.answer(sessionService.getAuthority, ({ runId }) => {
    const authority = authorities.get(runId);
    if (authority === undefined) throw fault(sessionService.getAuthority, 'TOOL_NOT_IN_SNAPSHOT');
    return authority;
  });
  responder.answer(sessionService.readSnapshot, ({ fingerprint }) => {
    const text = snapshots.get(fingerprint);
    if (text === undefined) throw fault(sessionService.readSnapshot, 'SNAPSHOT_UNKNOWN');
    return { text, next: null, agentId: 'guide' };
  });
  return {
    run(servers, { authority, skills } = {}) {
      const record: SnapshotRecord = {
        format: 'ambit.snapshot',
        schemaVersion: 1,
        agentId: 'guide',
        cataloguePolicyHash: sha256Hex('policy'),
        project: { id: 'default', workspaceId: null },
        model: { name: '', vision: false },
        tools: [],
        skills: skills ?? [],
        promptCommands: [],
        plugins: [],
        servers,
        subagents: null,
        switches: { skills: true, mcp: true, mcpSkills: true },
        reservedTableVersion: 1,
      };
      const text = canonicalRecord(record);
      const fingerprint = sha256Hex(text);
      snapshots.set(fingerprint, text);
      const runId = randomUUID();
      const made: Authority = {
        runId,
        originRunId: runId,
        sessionId: randomUUID(),
        agentId: 'guide',
        projectId: 'default',
        kind: 'edge',
        status: 'running',
        stateSequence: 1,
        stateVersion: 1,
        fingerprint,
        tokens: [],
        workerId: null,
        pool: 'shared',
        principal: { id: 'user:ada', kind: 'person', issuer: 'test', display: 'Ada' },
        mode: 'default',
        enabled: true,
        policy: Policy.parse({ servers: null }),
        policyVersion: 1,
        ancestors: [],
        revokedOwners: [],
        knownAgents: [],
        skills: [],
        openedSkills: [],
        step: null,
        remainingMs: 600_000,
        ...authority,
      };
      authorities.set(made.runId, made);
      return made;
    },
    close: () => responder.close(),
  };
}
