import { Module } from '@nestjs/common';
import { AuditHandlers } from './audit.handlers.js';
import { AgentHandlers } from './agent.handlers.js';
import { AgentService } from './agent.service.js';
import { AttemptService } from './attempt.service.js';
import { AuthorityService } from './authority.service.js';
import { CallRecordService } from './call-record.service.js';
import { EdgeService } from './edge.service.js';
import { Catalogues } from './catalogues.service.js';
import { AftercareService } from './aftercare.service.js';
import { DelegationHandlers } from './delegation.handlers.js';
import { DelegationService } from './delegation.service.js';
import { DraftService } from './draft.service.js';
import { Endings } from './ending.service.js';
import { ExplainService } from './explain.service.js';
import { FenceReader } from './fence.service.js';
import { FinishService } from './finish.service.js';
import { Ingress } from './ingress.service.js';
import { Instructions } from './instruction.service.js';
import { InteractionHandlers } from './interaction.handlers.js';
import { InteractionService } from './interaction.service.js';
import { JetStream } from './jetstream.service.js';
import { Journal } from './journal.service.js';
import { Launcher } from './launch.service.js';
import { Leases } from './lease.service.js';
import { LeavingService } from './leaving.service.js';
import { MessageService } from './message.service.js';
import { MoveService } from './move.service.js';
import { Narrowing } from './narrowing.service.js';
import { OwnerService } from './owner.service.js';
import { PermissionService } from './permission.service.js';
import { Permits } from './permits.service.js';
import { PoolService } from './pool.service.js';
import { PrincipalService } from './principal.service.js';
import { Progress } from './progress.service.js';
import { Rebuild } from './rebuild.service.js';
import { RefreshService } from './refresh.service.js';
import { RemovalService } from './removal.service.js';
import { Results } from './results.service.js';
import { Resumes } from './resume.service.js';
import { Retention } from './retention.service.js';
import { RunHandlers } from './run.handlers.js';
import { RunService } from './run.service.js';
import { SessionHandlers } from './session.handlers.js';
import { SessionService } from './session.service.js';
import { SkillChoice } from './skill-choice.service.js';
import { Snapshots } from './snapshot.service.js';
import { SpentJobs } from './spent-jobs.service.js';
import { StorageSweeper } from './storage.sweeper.js';
import { StepService } from './step.service.js';
import { Sweeper } from './sweeper.service.js';
import { ToolLoadService } from './tool-load.service.js';
import { TapeService } from './tape.service.js';
import { Transactions } from './transactions.repository.js';
import { WhoseReader } from './whose.service.js';
import { WorkerHandlers } from './worker.handlers.js';

@Module({
  controllers: [AuditHandlers, AgentHandlers, SessionHandlers, RunHandlers, WorkerHandlers, InteractionHandlers, DelegationHandlers],
  providers: [
    ...[
      Transactions,
      JetStream,
      Journal,
      Leases,
      FenceReader,
      Catalogues,
      Permits,
      Ingress,
      Snapshots,
      WhoseReader,
      Launcher,
      Instructions,
      SkillChoice,
      Endings,
      Narrowing,
      Progress,
      Results,
      Resumes,
    ],
    ...[
      AgentService,
      SessionService,
      MoveService,
      RemovalService,
      AftercareService,
      LeavingService,
      DraftService,
      DelegationService,
      ToolLoadService,
      MessageService,
      TapeService,
      RunService,
      AuthorityService,
      CallRecordService,
      EdgeService,
      OwnerService,
      PermissionService,
      PoolService,
    ],
    ...[
      AttemptService,
      StepService,
      RefreshService,
      FinishService,
      InteractionService,
      ExplainService,
      SpentJobs,
      Sweeper,
      StorageSweeper,
      Rebuild,
      PrincipalService,
      Retention,
    ],
  ],
})
export class SessionServiceModule {}
