import { Answers, Listens, type Call } from '@ambit/bus';
import { sessionService, type Parsed } from '@ambit/contracts';
import { Controller } from '@nestjs/common';
import type { z } from 'zod';
import { AuthorityService } from './authority.service.js';
import { CallRecordService } from './call-record.service.js';
import { EdgeService } from './edge.service.js';
import { OwnerService } from './owner.service.js';
import { PoolService } from './pool.service.js';
import { RunService } from './run.service.js';

@Controller()
export class RunHandlers {
  constructor(
    private readonly runs: RunService,
    private readonly authorities: AuthorityService,
    private readonly records: CallRecordService,
    private readonly owners: OwnerService,
    private readonly pools: PoolService,
    private readonly edges: EdgeService,
  ) {}

  @Answers(sessionService.getRun) get(input: Parsed<typeof sessionService.getRun>) {
    return this.runs.get(input.id);
  }
  @Answers(sessionService.listRuns) list(input: Parsed<typeof sessionService.listRuns>) {
    return this.runs.list(input);
  }
  @Answers(sessionService.cancelRun) cancel(input: Parsed<typeof sessionService.cancelRun>, call: Call) {
    return this.runs.cancel(input, call);
  }
  @Listens(sessionService.runStopped) stopped(payload: z.output<typeof sessionService.runStopped.payload>) {
    this.runs.stopped(payload.runId);
  }
  @Answers(sessionService.getAuthority) authority(input: Parsed<typeof sessionService.getAuthority>) {
    return this.authorities.of(input.runId);
  }
  @Answers(sessionService.recordResults) record(input: Parsed<typeof sessionService.recordResults>) {
    return this.records.record(input);
  }
  @Answers(sessionService.revokeOwner) revoke(input: Parsed<typeof sessionService.revokeOwner>, call: Call) {
    return this.owners.revoke(input, call);
  }
  @Answers(sessionService.openEdge) openEdge(input: Parsed<typeof sessionService.openEdge>, call: Call) {
    return this.edges.open(input, call);
  }
  @Answers(sessionService.ensurePool) ensurePool(input: Parsed<typeof sessionService.ensurePool>) {
    return this.pools.ensure(input);
  }
  @Answers(sessionService.removePool) removePool(input: Parsed<typeof sessionService.removePool>) {
    return this.pools.remove(input);
  }
}
