import { foldName, looksQualified, RESERVED_TABLE, reservedNameOf, workspaceToolProblem } from '@ambit/capability';
import { fault, toolGateway, type ToolRegistration } from '@ambit/contracts';

/** What a worker may say that its tools reach; the rest would borrow the platform's own trust. */
const WORKER_ACCESS: ReadonlySet<string> = new Set(['file', 'command', 'settings', 'other']);

/** Refuses a worker's registrations that carry a reserved name, another exposure than its own kind, or a reach that only the platform has. */
export function checkToolset(tools: readonly ToolRegistration[]): void {
  const seen = new Set<string>();
  for (const tool of tools) {
    const { name, exposure, access } = tool;
    const reserved = reservedNameOf(name);
    // The names of workspace tools are kept for the agent's own worker.
    const isWorkspace = reserved !== null && RESERVED_TABLE.get(reserved)?.by === 'workspace' && reserved === name;
    if ((reserved !== null && !isWorkspace) || looksQualified(name) || seen.has(foldName(name)))
      throw fault(toolGateway.registerWorker, 'NAME_RESERVED', { name });
    const mayReach = isWorkspace ? !workspaceToolProblem(tool) : WORKER_ACCESS.has(access);
    if (exposure !== 'user-configurable' || !mayReach) throw fault(toolGateway.registerWorker, 'EXPOSURE_MISMATCH', { name });
    seen.add(foldName(name));
  }
}
