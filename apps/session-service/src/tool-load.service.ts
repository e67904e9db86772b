import { readSnapshot } from '@ambit/capability';
import type { Call } from '@ambit/bus';
import { fault, LOADED_TOOLS_MAX, sessionService, type Output, type Parsed } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { doerOf } from './doer.js';
import { hasEnded } from './domain/run-state.js';
import { runs } from './run.repository.js';
import { sessions } from './session.repository.js';
import { snapshots } from './snapshot.repository.js';
import { Transactions } from './transactions.repository.js';

/** Has a session see deferred tools whole: those that its run could have, and no more than the limit. */
@Injectable()
export class ToolLoadService {
  constructor(private readonly transactions: Transactions) {}

  async load({ runId, name }: Parsed<typeof sessionService.loadTool>, call: Call): Promise<Output<typeof sessionService.loadTool>> {
    return this.transactions.run(async (unit) => {
      const asking = await runs.find(unit.sql, runId);
      if (asking === undefined || !(await sessions.lock(unit.sql, asking.sessionId)))
        throw fault(sessionService.loadTool, 'TOOL_NOT_IN_SNAPSHOT');
      const [run, session] = await Promise.all([runs.find(unit.sql, runId), sessions.find(unit.sql, asking.sessionId)]);
      if (run === undefined || session === undefined) throw fault(sessionService.loadTool, 'TOOL_NOT_IN_SNAPSHOT');
      if (hasEnded(run)) throw fault(sessionService.loadTool, 'TURN_ENDED');
      if (session.loadedTools.includes(name)) return { loaded: [...session.loadedTools] };
      const row = await snapshots.find(unit.sql, run.fingerprint);
      const deferred = row === undefined ? [] : (readSnapshot(row.text, row.fingerprint).deferred ?? []);
      // A session that moved has another agent's tools now.
      if (session.agentId !== run.agentId || !deferred.some((tool) => tool.name === name))
        throw fault(sessionService.loadTool, 'TOOL_NOT_IN_SNAPSHOT');
      if (session.loadedTools.length >= LOADED_TOOLS_MAX)
        throw fault(sessionService.loadTool, 'LOADED_TOOLS_LIMIT', { limit: LOADED_TOOLS_MAX });
      const loadedTools = [...session.loadedTools, name];
      await sessions.change(unit, session, { loadedTools });
      unit.audit({ action: 'tool.load', target: `session:${session.id}`, projectId: session.projectId, reason: name }, doerOf(call));
      return { loaded: loadedTools };
    });
  }
}
