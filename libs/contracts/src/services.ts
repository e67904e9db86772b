import { adminApi } from './admin-api.js';
import type { EventContract, JobContract, Rpc, SignalContract } from './kit/contract.js';
import { mcpBroker } from './mcp-broker.js';
import { mcpEdge } from './mcp-edge.js';
import { mcpRunner } from './mcp-runner.js';
import { permitChecker } from './permit-checker.js';
import { pluginRegistry } from './plugin-registry.js';
import { reviewer } from './reviewer.js';
import { sessionService } from './session-service.js';
import { skillStore } from './skill-store.js';
import { toolGateway, worker } from './tool-gateway.js';

/** What a service does on the bus. The compiler and BusServer hold it to this, and NATS permissions are read off it. */
export interface ServiceUse {
  readonly answers: readonly Rpc[];
  readonly calls: readonly Rpc[];
  readonly emits: readonly EventContract[];
  readonly hears: readonly EventContract[];
  readonly enqueues: readonly JobContract[];
  readonly works: readonly JobContract[];
  readonly signals: readonly SignalContract[];
  readonly listens: readonly SignalContract[];
  /** Answered for one key at a time, from the moment the service holds the thing that the key names. */
  readonly answersDynamically: readonly Rpc[];
  readonly stores: {
    readonly reads: readonly string[];
    /** Bucket → key prefixes that may be written; `''` = the whole bucket. */
    readonly writes: Readonly<Record<string, readonly string[]>>;
    /** Subject prefixes in AMBIT_JOURNAL that may be published. */
    readonly journal: readonly string[];
    readonly consumes: readonly string[];
    /** Streams that messages about something removed may be purged from. */
    readonly purges?: readonly string[];
  };
}

const s = sessionService;
const g = toolGateway;
const b = mcpBroker;
const r = mcpRunner;
const k = skillStore;
const p = pluginRegistry;

/** The whole system on one page. */
export const services = {
  'session-service': {
    answers: [
      s.listAudit,
      s.putProject, s.listProjects, s.putAgent, s.getAgent, s.listAgents, s.deleteAgent, s.adjustAgent, s.matchAgent, s.receiveMessage, s.createSession, s.getSession, s.listSessions, s.updateSession, s.transferSession,
      s.forkSession, s.clearSession, s.deleteSession, s.createDraft, s.getRun, s.listRuns, s.startDelegation, s.listDelegations, s.getDelegation, s.delegationLog, s.killDelegation,
      s.cancelRun, s.getAuthority, s.listTape, s.searchTape, s.tapeContext, s.requestInteractions, s.withdrawInteraction, s.getInteraction, s.listInteractions, s.decideInteraction, s.settleInteraction, s.recordResults, s.readSnapshot,
      s.erasePrincipal,
      s.listSnapshots, s.explain, s.listCommands, s.loadTool, s.revokeOwner, s.ensurePool, s.removePool, s.openEdge, s.startRun, s.stepRun, s.readTape, s.renewRun, s.refreshRun, s.askPermission, s.openRunEdge, s.finishRun,
    ],
    calls: [adminApi.issueRunToken, g.listTools, g.listCalls, g.clearSession, b.catalogueHeads, b.cataloguePage, b.skillPage, k.effectiveSkills, k.removeScope, p.pluginSlots, permitChecker.checkPermits],
    emits: [s.runChanged, s.tapeAppended, s.interactionRequested, s.interactionSettled, s.messagePosted, s.snapshotPublished, s.mappingPublished, s.agentChanged, s.delegationChanged, s.auditAppended],
    hears: [],
    enqueues: [s.runExecute, g.executeDeferred],
    works: [],
    signals: [g.stepStored, g.cancelRunCalls, worker.cancelRun],
    listens: [s.runStopped],
    answersDynamically: [],
    stores: { reads: ['AMBIT_JOURNAL', 'ambit_epochs'], writes: { ambit_snapshots: [''], ambit_mappings: [''], ambit_leases_15s: ['run.'], ambit_epochs: ['session-service.'] }, journal: ['ambit.jrn.v1.run.'], consumes: ['AMBIT_RUNS'], purges: ['AMBIT_EVENTS'] },
  },
  'tool-gateway': {
    answers: [g.listAudit, g.executeBatch, g.executeCall, g.registerWorker, g.readArtifact, g.writeArtifact, g.getArtifact, g.listTools, g.listCalls, g.getCall, g.resolveCall, g.cancelCall, g.askTool, g.erasePrincipal, g.clearSession],
    calls: [s.getAuthority, s.startDelegation, s.listDelegations, s.getDelegation, s.delegationLog, s.killDelegation, s.readSnapshot, s.requestInteractions, s.withdrawInteraction, s.getInteraction, s.settleInteraction, s.recordResults, s.searchTape, s.tapeContext, s.listTape, s.getAgent, s.adjustAgent, s.loadTool, reviewer.reviewCall, b.ensureInstance, b.executeCall, b.resultPage, b.getServer, b.readServerSkill, k.readSkill, k.readScript, k.putDraft, k.installDraft, worker.prepareTool, worker.stageFile, worker.callTool, worker.resultPage],
    emits: [g.callStarted, g.callEnded, g.callParked, g.toolsChanged, g.auditAppended],
    hears: [s.runChanged, s.delegationChanged, s.interactionSettled],
    enqueues: [],
    works: [g.executeDeferred],
    signals: [b.cancelCall, g.cancelOperation, s.runStopped, mcpEdge.callProgress, mcpEdge.callLogged, worker.batchProgress, worker.cancelCall, worker.endSession],
    listens: [g.stepStored, g.cancelRunCalls, g.cancelOperation, g.callProgress, g.callLogged],
    answersDynamically: [g.askBack],
    stores: { reads: ['AMBIT_JOURNAL', 'AMBIT_DEFERRED', 'ambit_snapshots', 'ambit_mappings', 'ambit_epochs', 'ambit_leases_5s', 'ambit_leases_60s'], writes: { ambit_leases_5s: ['gateway.'], ambit_leases_15s: ['worker.'], ambit_epochs: ['tool-gateway.'], ambit_artifacts: [''] }, journal: ['ambit.jrn.v1.op.'], consumes: ['AMBIT_JOURNAL'], purges: ['AMBIT_EVENTS'] },
  },
  'mcp-broker': {
    answers: [b.listAudit, b.putServer, b.getServer, b.listServers, b.deleteServer, b.testServer, b.getHeldTool, b.acceptTool, b.switchServer, b.startAuthorization, b.describeAuthorization, b.finishAuthorization, b.listAuthorizations, b.removeAuthorization, b.erasePrincipal, b.putSecret, b.listSecrets, b.deleteSecret, b.signWithSecret, b.catalogueHeads, b.cataloguePage, b.ensureInstance, b.revokeOwner, b.listOffers, b.getPrompt, b.readResource, b.completeArgument, b.subscribeResource, b.unsubscribeResource, b.skillPage, b.readServerSkill, b.putSwitch, b.listSwitches],
    calls: [r.startInstance, r.instanceTools, r.stopInstance, s.revokeOwner, s.getAuthority, s.readSnapshot, b.instanceRequest, b.instanceOffers, g.askBack],
    emits: [b.catalogueChanged, b.auditAppended],
    hears: [],
    enqueues: [],
    works: [],
    signals: [b.closeInstance, b.cancelCall, g.callProgress, g.callLogged, b.resourceUpdated],
    listens: [r.instanceChanged, b.cancelCall, b.closeInstance],
    answersDynamically: [b.executeCall, b.resultPage, b.instanceRequest, b.instanceOffers],
    stores: { reads: ['ambit_epochs', 'ambit_leases_5s'], writes: { ambit_leases_5s: ['instance.'], ambit_epochs: ['mcp-broker.'] }, journal: [], consumes: [] },
  },
  'mcp-runner': {
    answers: [r.startInstance],
    calls: [p.readPackage, g.askBack],
    emits: [],
    hears: [],
    enqueues: [],
    works: [],
    signals: [r.instanceChanged, g.callProgress, g.callLogged, b.resourceUpdated],
    listens: [b.cancelCall, b.closeInstance],
    answersDynamically: [r.instanceTools, r.stopInstance, b.executeCall, b.resultPage, b.instanceRequest, b.instanceOffers],
    stores: { reads: ['ambit_leases_5s'], writes: { ambit_leases_5s: ['instance.'] }, journal: [], consumes: [] },
  },
  'skill-store': {
    answers: [k.listAudit, k.putBlob, k.putSkill, k.getSkill, k.listSkills, k.enableSkill, k.disableSkill, k.deleteSkill, k.effectiveSkills, k.readSkill, k.describeSkill, k.enableScript, k.disableScript, k.readScript, k.putContribution, k.revokeOwner, k.removeScope, k.previewImport, k.executeImport, k.putSwitch, k.listSwitches, k.putDraft, k.listDrafts, k.readDraft, k.discardDraft, k.installDraft],
    calls: [s.getAgent],
    emits: [k.skillChanged, k.auditAppended],
    hears: [],
    enqueues: [],
    works: [],
    signals: [k.importProgressed],
    listens: [],
    answersDynamically: [],
    stores: { reads: ['ambit_epochs', 'ambit_leases_60s'], writes: { ambit_epochs: ['skill-store.'] }, journal: [], consumes: [] },
  },
  'plugin-registry': {
    answers: [p.listAudit, p.putBlob, p.installPlugin, p.getPlugin, p.listPlugins, p.enablePlugin, p.disablePlugin, p.uninstallPlugin, p.pluginSlots, p.readPackage, p.trustPublisher, p.listPublishers, p.distrustPublisher],
    calls: [k.putBlob, k.putContribution, k.revokeOwner, b.putServer, b.listServers, b.revokeOwner, s.revokeOwner],
    emits: [p.pluginChanged, p.auditAppended],
    hears: [],
    enqueues: [],
    works: [],
    signals: [],
    listens: [],
    answersDynamically: [],
    stores: { reads: ['ambit_epochs'], writes: { ambit_epochs: ['plugin-registry.'], ambit_leases_60s: ['owner.'] }, journal: [], consumes: [] },
  },
  'admin-api': {
    answers: [adminApi.renewCredential, adminApi.resolveEdgeToken, adminApi.issueRunToken],
    calls: [
      s.listAudit, g.listAudit, b.listAudit, k.listAudit, p.listAudit,
      s.putProject, s.listProjects, s.putAgent, s.getAgent, s.listAgents, s.deleteAgent, s.matchAgent, s.receiveMessage, s.createSession, s.getSession, s.listSessions, s.updateSession, s.transferSession,
      s.forkSession, s.clearSession, s.deleteSession, s.createDraft, s.erasePrincipal, s.listDelegations, s.getRun, s.listRuns, s.cancelRun, s.listTape, s.getInteraction, s.listInteractions, s.decideInteraction, s.readSnapshot, s.listSnapshots, s.explain, s.listCommands, s.ensurePool, s.removePool,
      g.getArtifact, g.listTools, g.listCalls, g.getCall, g.resolveCall, g.cancelCall, g.askTool, g.erasePrincipal,
      b.putServer, b.getServer, b.listServers, b.deleteServer, b.testServer, b.getHeldTool, b.acceptTool, b.switchServer, b.startAuthorization, b.describeAuthorization, b.finishAuthorization, b.listAuthorizations, b.removeAuthorization, b.erasePrincipal, b.putSecret, b.listSecrets, b.deleteSecret, b.signWithSecret, b.putSwitch, b.listSwitches,
      k.putSwitch, k.listSwitches, k.listDrafts, k.readDraft, k.discardDraft, k.putBlob, k.putSkill, k.getSkill, k.listSkills, k.enableSkill, k.disableSkill, k.deleteSkill, k.readSkill, k.enableScript, k.disableScript, k.previewImport, k.executeImport,
      p.putBlob, p.installPlugin, p.getPlugin, p.listPlugins, p.enablePlugin, p.disablePlugin, p.uninstallPlugin, p.trustPublisher, p.listPublishers, p.distrustPublisher,
    ],
    emits: [adminApi.workerRevoked, adminApi.auditAppended],
    hears: [s.interactionRequested, g.callParked, s.auditAppended, g.auditAppended, b.auditAppended, k.auditAppended, p.auditAppended, adminApi.auditAppended],
    enqueues: [],
    works: [],
    signals: [],
    listens: [s.runOutput, k.importProgressed],
    answersDynamically: [],
    stores: { reads: ['AMBIT_EVENTS'], writes: {}, journal: [], consumes: ['AMBIT_EVENTS'] },
  },
  'mcp-edge': {
    answers: [],
    calls: [adminApi.resolveEdgeToken, s.openEdge, s.readSnapshot, s.getInteraction, s.listInteractions, s.decideInteraction, s.withdrawInteraction, g.executeCall, g.cancelCall, g.getArtifact, b.cataloguePage, b.listOffers, b.getPrompt, b.readResource, b.completeArgument, b.subscribeResource, b.unsubscribeResource, b.resultPage, k.describeSkill, k.readSkill],
    emits: [],
    hears: [b.catalogueChanged, s.agentChanged, s.interactionRequested, s.interactionSettled, g.toolsChanged, k.skillChanged, p.pluginChanged],
    enqueues: [],
    works: [],
    signals: [mcpEdge.requestCancelled, mcpEdge.clientAnswered, mcpEdge.resourceFollowed],
    listens: [mcpEdge.callProgress, mcpEdge.callLogged, mcpEdge.requestCancelled, mcpEdge.clientAnswered, mcpEdge.resourceFollowed, b.resourceUpdated],
    answersDynamically: [],
    stores: { reads: [], writes: { ambit_tombstones: [''] }, journal: [], consumes: [] },
  },
} as const satisfies Record<string, ServiceUse>;

export type ServiceName = keyof typeof services;
