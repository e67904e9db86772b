import { LOG, type Logger } from '@ambit/service';
import { Module } from '@nestjs/common';
import { AuditHandlers } from './audit.handlers.js';
import { ArgumentsPolicy } from './arguments.policy.js';
import { ArtifactHandlers } from './artifact.handlers.js';
import { ArtifactRepository } from './artifact.repository.js';
import { ArtifactService } from './artifact.service.js';
import { ArtifactStore } from './artifact.store.js';
import { AskBackHandlers } from './ask-back.handlers.js';
import { AskBackService } from './ask-back.service.js';
import { Asking } from './asking.js';
import { AuthorityCache } from './authority.cache.js';
import { BatchHandlers } from './batch.handlers.js';
import { BatchRunner } from './batch.runner.js';
import { BatchService } from './batch.service.js';
import { BuiltinGroups } from './builtins/builtin.groups.js';
import { BuiltinRegistry } from './builtins/builtin.registry.js';
import { CallGates } from './call.gates.js';
import { CallHooks } from './call.hooks.js';
import { CallHandlers } from './call.handlers.js';
import { CallRepository } from './call.repository.js';
import { CallRunner } from './call.runner.js';
import { CallService } from './call.service.js';
import { CallWatch } from './call.watch.js';
import { CancelService } from './cancel.service.js';
import { DeferredHandlers } from './deferred.handlers.js';
import { DeferredService } from './deferred.service.js';
import { BuiltinDispatcher } from './dispatch/builtin.dispatcher.js';
import { InstanceOwners } from './dispatch/instance.owners.js';
import { McpDispatcher } from './dispatch/mcp.dispatcher.js';
import { WorkerDispatcher } from './dispatch/worker.dispatcher.js';
import { DelegationHandlers } from './delegation.handlers.js';
import { DelegationWaits } from './delegation.waits.js';
import { EdgeCalls } from './edge.calls.js';
import { EndedRuns } from './ended-runs.js';
import { ErasureRepository } from './erasure.repository.js';
import { ForeignClaims } from './foreign.claims.js';
import { GatewayLease } from './gateway.lease.js';
import { GrantRepository } from './grant.repository.js';
import { Housekeeping } from './housekeeping.js';
import { InteractionWaits } from './interaction.waits.js';
import { Journal } from './journal.js';
import { OpenCalls } from './open-calls.js';
import { OutcomeWriter } from './outcome.writer.js';
import { PlanRepository } from './plan.repository.js';
import { Preparation } from './preparation.js';
import { Previews } from './previews.js';
import { PrincipalService } from './principal.service.js';
import { Projection } from './projection.js';
import { Reconciliation } from './reconciliation.js';
import { Refusals } from './refusals.js';
import { Reviews } from './reviews.js';
import { RunAdmission } from './run.admission.js';
import { SchemaValidators } from './schema.validators.js';
import { SessionHandlers } from './session.handlers.js';
import { SessionRemains } from './session.remains.js';
import { SessionRepository } from './session.repository.js';
import { SkillScripts } from './skill-scripts.js';
import { SnapshotCache } from './snapshot.cache.js';
import { StoredFacts } from './stored-facts.js';
import { TargetFactsSource } from './target.facts.js';
import { ToolHandlers } from './tool.handlers.js';
import { ToolService } from './tool.service.js';
import { ToolsetRepository } from './toolset.repository.js';
import { Toolsets } from './toolsets.js';
import { UnheardRepository } from './unheard.repository.js';

/** One that is registered otherwise than the reserved table says ends the start. */
const builtins = {
  provide: BuiltinRegistry,
  inject: [BuiltinGroups, LOG],
  useFactory: (groups: BuiltinGroups, log: Logger) => new BuiltinRegistry(groups.all(), log),
};

@Module({
  controllers: [
    AuditHandlers,
    BatchHandlers,
    CallHandlers,
    ArtifactHandlers,
    ToolHandlers,
    DeferredHandlers,
    DelegationHandlers,
    SessionHandlers,
    AskBackHandlers,
  ],
  providers: [
    builtins,
    ArgumentsPolicy,
    ArtifactRepository,
    ArtifactService,
    ArtifactStore,
    Asking,
    AskBackService,
    AuthorityCache,
    BatchRunner,
    BatchService,
    BuiltinDispatcher,
    BuiltinGroups,
    CallGates,
    CallHooks,
    CallRepository,
    CallRunner,
    CallService,
    CallWatch,
    CancelService,
    DeferredService,
    DelegationWaits,
    EdgeCalls,
    EndedRuns,
    ErasureRepository,
    ForeignClaims,
    GatewayLease,
    GrantRepository,
    Housekeeping,
    Journal,
    InstanceOwners,
    InteractionWaits,
    McpDispatcher,
    OpenCalls,
    OutcomeWriter,
    PlanRepository,
    Preparation,
    Previews,
    PrincipalService,
    Projection,
    Reconciliation,
    Refusals,
    Reviews,
    RunAdmission,
    SchemaValidators,
    SessionRemains,
    SessionRepository,
    SkillScripts,
    SnapshotCache,
    StoredFacts,
    TargetFactsSource,
    ToolService,
    ToolsetRepository,
    UnheardRepository,
    Toolsets,
    WorkerDispatcher,
  ],
})
export class ToolGatewayModule {}
