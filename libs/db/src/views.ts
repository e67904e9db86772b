import type { PrismaClient } from './generated/client.js';

/** What every view has: transactions and the raw queries that the outbox and audit helpers use. */
type Common = '$transaction' | '$queryRawUnsafe' | '$executeRawUnsafe' | '$queryRaw' | '$executeRaw';

type SessionTable =
  | 'project'
  | 'agent'
  | 'session'
  | 'tapeEntry'
  | 'run'
  | 'runAttempt'
  | 'runStep'
  | 'interaction'
  | 'receipt'
  | 'queuedMessage'
  | 'snapshot'
  | 'mapping'
  | 'ownerFence'
  | 'knownJournal'
  | 'draft'
  | 'deletedAgent'
  | 'delegation'
  | 'delegationTask'
  | 'aftercare'
  | 'pool';

// Each owner sees its own tables alone; wanting another's is a compile error, and then a call on the bus.
export type SessionDb = Pick<PrismaClient, Common | 'sessionOutbox' | 'sessionAudit' | SessionTable>;
export type GatewayDb = Pick<
  PrismaClient,
  | Common
  | 'gatewayOutbox'
  | 'gatewayAudit'
  | 'gatewayCall'
  | 'gatewayErased'
  | 'gatewayGrant'
  | 'gatewayArtifact'
  | 'gatewayUploadPart'
  | 'gatewayToolset'
  | 'gatewayEpoch'
  | 'gatewayPlan'
  | 'gatewayEndedRun'
>;
export type BrokerDb = Pick<
  PrismaClient,
  | Common
  | 'brokerOutbox'
  | 'brokerAudit'
  | 'brokerServer'
  | 'brokerCatalogue'
  | 'brokerOffers'
  | 'brokerSwitch'
  | 'brokerInstance'
  | 'brokerSecret'
  | 'brokerOwner'
  | 'brokerChallenge'
  | 'brokerCredential'
  | 'brokerFlow'
  | 'brokerClient'
  | 'brokerSwitchedOff'
>;
export type SkillDb = Pick<
  PrismaClient,
  | Common
  | 'skillOutbox'
  | 'skillAudit'
  | 'skillBlob'
  | 'skillBlobChunk'
  | 'skillVersion'
  | 'skillEntry'
  | 'skillScript'
  | 'skillContribution'
  | 'skillEpoch'
  | 'skillSwitch'
  | 'skillSwitchedOff'
  | 'skillRemovedScope'
  | 'skillBuried'
  | 'skillDraft'
>;
export type PluginDb = Pick<
  PrismaClient,
  Common | 'pluginOutbox' | 'pluginAudit' | 'pluginBlob' | 'pluginBlobChunk' | 'pluginPackage' | 'pluginInstallation' | 'pluginPublisher'
>;
export type AdminDb = Pick<
  PrismaClient,
  | Common
  | 'adminOutbox'
  | 'adminAudit'
  | 'adminToken'
  | 'adminEdgeToken'
  | 'adminRoleGrant'
  | 'adminWorkerCredential'
  | 'adminAuditView'
  | 'adminLostRecord'
  | 'adminNotifySink'
  | 'adminNotifyDelivery'
>;
