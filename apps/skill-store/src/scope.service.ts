import type { Parsed, Returns, skillStore } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { ScopeRepository } from './scope.repository.js';
import { changeOf, type Context } from './skill.change.js';

/** Ends the scope of an agent that was deleted. */
@Injectable()
export class ScopeService {
  constructor(private readonly scopes: ScopeRepository) {}

  async remove(
    { agentId, createdAt }: Parsed<typeof skillStore.removeScope>,
    context: Context,
  ): Promise<Returns<typeof skillStore.removeScope>> {
    const change = changeOf(
      { agentId, projectId: null, set: null },
      { name: '*', reason: 'removed', context, digests: [null, null], about: 'the agent was deleted' },
    );
    return { removed: await this.scopes.remove(change, new Date(createdAt)) };
  }
}
