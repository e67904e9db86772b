import { Answers, Listens, type Call } from '@ambit/bus';
import { toolGateway, type CallResult, type Parsed } from '@ambit/contracts';
import { Controller, Inject } from '@nestjs/common';
import type { z } from 'zod';
import { AuthorityCache } from './authority.cache.js';
import { BatchService } from './batch.service.js';

type StepStored = z.output<typeof toolGateway.stepStored.payload>;

@Controller()
export class BatchHandlers {
  constructor(
    @Inject(BatchService) private readonly batches: BatchService,
    @Inject(AuthorityCache) private readonly authorities: AuthorityCache,
  ) {}

  @Answers(toolGateway.executeBatch)
  execute(input: Parsed<typeof toolGateway.executeBatch>, call: Call<typeof toolGateway.executeBatch>): Promise<{ results: CallResult[] }> {
    return this.batches.execute(input, call);
  }

  @Listens(toolGateway.stepStored)
  stepStored({ runId, ...step }: StepStored): void {
    this.authorities.stepStored(runId, step);
  }
}
