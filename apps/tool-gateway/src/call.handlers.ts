import { Answers, Hears, Listens, type Call } from '@ambit/bus';
import { sessionService, toolGateway, type CallRecord, type Output, type Parsed } from '@ambit/contracts';
import { Controller, Inject } from '@nestjs/common';
import type { z } from 'zod';
import { CallService } from './call.service.js';
import { CancelService } from './cancel.service.js';
import { EdgeCalls } from './edge.calls.js';
import { EndedRuns } from './ended-runs.js';
import { OpenCalls } from './open-calls.js';
import { PrincipalService } from './principal.service.js';

type RunMoved = z.output<typeof toolGateway.cancelRunCalls.payload>;
type Stop = z.output<typeof toolGateway.cancelOperation.payload>;
type Progress = z.output<typeof toolGateway.callProgress.payload>;
type RunChanged = z.output<typeof sessionService.runChanged.payload>;

@Controller()
export class CallHandlers {
  constructor(
    @Inject(CallService) private readonly calls: CallService,
    @Inject(CancelService) private readonly cancels: CancelService,
    @Inject(EndedRuns) private readonly ended: EndedRuns,
    @Inject(OpenCalls) private readonly open: OpenCalls,
    @Inject(PrincipalService) private readonly principals: PrincipalService,
    @Inject(EdgeCalls) private readonly edge: EdgeCalls,
  ) {}

  @Answers(toolGateway.executeCall)
  execute(
    input: Parsed<typeof toolGateway.executeCall>,
    call: Call<typeof toolGateway.executeCall>,
  ): Promise<Output<typeof toolGateway.executeCall>> {
    return this.edge.execute(input, call);
  }

  @Answers(toolGateway.listCalls)
  list(input: Parsed<typeof toolGateway.listCalls>): Promise<Output<typeof toolGateway.listCalls>> {
    return this.calls.list(input);
  }

  @Answers(toolGateway.getCall)
  get({ operationId }: Parsed<typeof toolGateway.getCall>): Promise<CallRecord> {
    return this.calls.get(operationId);
  }

  @Answers(toolGateway.resolveCall)
  resolve(input: Parsed<typeof toolGateway.resolveCall>, call: Call<typeof toolGateway.resolveCall>): Promise<CallRecord> {
    return this.calls.resolve(input, call);
  }

  @Answers(toolGateway.cancelCall)
  async cancel(
    { operationId, reason }: Parsed<typeof toolGateway.cancelCall>,
    call: Call<typeof toolGateway.cancelCall>,
  ): Promise<Output<typeof toolGateway.cancelCall>> {
    return { state: await this.cancels.cancel(operationId, reason, call.actor?.id ?? 'system:tool-gateway') };
  }

  @Answers(toolGateway.erasePrincipal)
  erase(input: Parsed<typeof toolGateway.erasePrincipal>): Promise<Output<typeof toolGateway.erasePrincipal>> {
    return this.principals.erase(input);
  }

  @Listens(toolGateway.cancelRunCalls)
  runMoved({ runId, abort, reason }: RunMoved): Promise<void> {
    return this.cancels.runMoved(runId, abort, reason);
  }

  @Listens(toolGateway.cancelOperation)
  stop({ operationId, reason }: Stop): void {
    this.cancels.stopHere(operationId, reason);
  }

  @Listens(toolGateway.callProgress)
  progress({ operationId, ...progress }: Progress): void {
    this.open.progressed(operationId, progress);
    this.edge.progressed(operationId, progress);
  }

  @Hears(sessionService.runChanged)
  runChanged(run: RunChanged): Promise<void> {
    return this.ended.runChanged(run);
  }
}
