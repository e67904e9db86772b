import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { repository } from './stack-folder.js';

/** A service of the stack, in the order of starting. */
export interface ServiceDefinition {
  readonly name: string;
  /** Given DATABASE_URL; mcp-runner, which runs other people's programs, is not. */
  readonly hasDatabase: boolean;
  /** Given the key that seals secrets. */
  readonly hasSealingKey?: boolean;
  /** Serves people over HTTP, on AMBIT_HTTP_PORT. */
  readonly isHttp?: boolean;
  /** Serves MCP clients over HTTP, on AMBIT_EDGE_PORT. */
  readonly isEdge?: boolean;
}

const all: readonly ServiceDefinition[] = [
  { name: 'plugin-registry', hasDatabase: true },
  { name: 'skill-store', hasDatabase: true },
  { name: 'mcp-runner', hasDatabase: false },
  { name: 'mcp-broker', hasDatabase: true, hasSealingKey: true },
  { name: 'tool-gateway', hasDatabase: true },
  { name: 'session-service', hasDatabase: true },
  { name: 'admin-api', hasDatabase: true, isHttp: true },
  { name: 'mcp-edge', hasDatabase: false, isEdge: true },
];

export function programOf(service: string): string {
  return join(repository, 'apps', service, 'dist', 'main.js');
}

/** The services that are built, in the order of starting. */
export function builtServices(): readonly ServiceDefinition[] {
  return all.filter(({ name }) => existsSync(programOf(name)));
}
