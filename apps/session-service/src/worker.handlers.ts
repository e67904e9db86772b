import { Answers, type Call } from '@ambit/bus';
import { sessionService, type Parsed } from '@ambit/contracts';
import { Controller } from '@nestjs/common';
import { AttemptService } from './attempt.service.js';
import { EdgeService } from './edge.service.js';
import { FinishService } from './finish.service.js';
import { PermissionService } from './permission.service.js';
import { RefreshService } from './refresh.service.js';
import { StepService } from './step.service.js';

/** What workers call: the agent is the subject's, whatever a body says. */
@Controller()
export class WorkerHandlers {
  constructor(
    private readonly attempts: AttemptService,
    private readonly steps: StepService,
    private readonly refreshes: RefreshService,
    private readonly finishes: FinishService,
    private readonly permissions: PermissionService,
    private readonly edges: EdgeService,
  ) {}

  @Answers(sessionService.startRun) start(input: Parsed<typeof sessionService.startRun>, call: Call<typeof sessionService.startRun>) {
    return this.attempts.start(input, call);
  }
  @Answers(sessionService.stepRun) step(input: Parsed<typeof sessionService.stepRun>, call: Call<typeof sessionService.stepRun>) {
    return this.steps.step(input, call);
  }
  @Answers(sessionService.readTape) read(input: Parsed<typeof sessionService.readTape>, call: Call<typeof sessionService.readTape>) {
    return this.attempts.read(input, call);
  }
  @Answers(sessionService.renewRun) renew(input: Parsed<typeof sessionService.renewRun>, call: Call<typeof sessionService.renewRun>) {
    return this.attempts.renew(input, call);
  }
  @Answers(sessionService.refreshRun) refresh(
    input: Parsed<typeof sessionService.refreshRun>,
    call: Call<typeof sessionService.refreshRun>,
  ) {
    return this.refreshes.refresh(input, call);
  }
  @Answers(sessionService.askPermission) ask(
    input: Parsed<typeof sessionService.askPermission>,
    call: Call<typeof sessionService.askPermission>,
  ) {
    return this.permissions.ask(input, call);
  }
  @Answers(sessionService.openRunEdge) edge(
    input: Parsed<typeof sessionService.openRunEdge>,
    call: Call<typeof sessionService.openRunEdge>,
  ) {
    return this.edges.issue(input, call);
  }
  @Answers(sessionService.finishRun) finish(input: Parsed<typeof sessionService.finishRun>, call: Call<typeof sessionService.finishRun>) {
    return this.finishes.finish(input, call);
  }
}
