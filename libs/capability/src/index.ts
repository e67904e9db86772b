export { ARGUMENT_LIMITS, BadArguments, isObject, parseArguments } from './arguments.js';
export { BoundedMap } from './bounded-map.js';
export {
  byCodeUnit,
  canonicalJson,
  canonicalRecord,
  digestOf,
  fingerprint,
  NotCanonical,
  RECORD_BOUNDS,
  VALUE_BOUNDS,
  type Bounds,
} from './canonical.js';
export { sha256Hex } from './sha256.js';
export { utf8Text } from './utf8.js';
export { SIGNATURE_FILE, SIGNATURE_FORMAT, signedStatement } from './plugin-signature.js';
export { formatDuration, parseDuration } from './duration.js';
export {
  definitionHash,
  approvedTarget,
  argumentsHash,
  askedOperationId,
  instanceId,
  operationId,
  resumeRunId,
  targetHash,
  uuidV8,
  type InstanceIdentity,
} from './operation-id.js';
export {
  allows,
  cataloguePolicyHash,
  composeCatalogue,
  intersectLists,
  narrowerMode,
  NOTHING_ALLOWED,
  type CataloguePolicy,
} from './policy.js';
export {
  listFromDocument,
  listToDocument,
  PolicyDocument,
  policyFromDocument,
  policyToDocument,
  ruleToDocument,
} from './policy-document.js';
export {
  registrationProblem,
  RESERVED_NAMES,
  RESERVED_PREFIXES,
  COMMAND_TOOL,
  RESERVED_TABLE,
  RESERVED_TABLE_VERSION,
  workspaceToolProblem,
} from './reserved.js';
export {
  type Access,
  isSnapshot,
  ModelFacts,
  ownersOf,
  readSnapshot,
  SNAPSHOT_FORMAT,
  SNAPSHOT_SCHEMA_VERSION,
  SnapshotMismatch,
  SnapshotPlugin,
  SnapshotPrompt,
  SnapshotRecord,
  SnapshotServer,
  SnapshotSkill,
  SnapshotSubagent,
  SnapshotTool,
  Switches,
  toolOf,
} from './snapshot.js';
export { foldName, looksQualified, qualifiedToolName, refusedNames, reservedNameOf, TOOL_NAME_MAX, type RefusedName } from './tool-name.js';
export { commandCaught, commandCovered, readCommand, type CommandPart, type CommandText } from './command.js';
export { commandRisk, greaterRisk, type Risk } from './command-risk.js';
export { CLOSED_NAMES, isClosedName, isUnder, pathScope, targetScope, type PathScope } from './path-scope.js';
export type {
  Asks,
  AsksQuestion,
  AuthorityLink,
  Decision,
  GateCode,
  GateInput,
  Grant,
  PreparedFacts,
  Refusal,
  RunAuthority,
  Stop,
  TargetFacts,
  UsageWindow,
} from './gate-input.js';
export { GRANT_MS, policyStamp } from './gate-state.js';
export { evaluateGates, GATES, type Gate, type GateOptions } from './gates.js';
export { matchesGlob } from './glob.js';
export {
  decidePermission,
  entitlement,
  INTERACTION_MS,
  modeVerdict,
  ruleBasedReviewer,
  type AskTerms,
  type CallFacts,
  type ChainLink,
  type Decider,
  type Permission,
  type PermissionQuestion,
  type Rating,
  type Reviewer,
} from './permission.js';
export { actionHash, reviewerOf, wantsReview, type ReviewedAction } from './review.js';
export { QUESTION_TOOL, readQuestion } from './question.js';
export { argumentAt, evaluateRules, matchesRule, ruleText, type RuleSubject, type RuleVerdict } from './rules.js';
export {
  delegationEffect,
  allowsPreset,
  policyInSlot,
  resolveSubagents,
  slotsNamed,
  SUBAGENT_SLOTS_MAX,
  SUBAGENT_TOOL,
  type SessionKind,
  type SubagentQuestion,
  type SubagentReason,
  type SubagentSlotProblem,
} from './subagents.js';
export { cacheKey, worldKey, type CompositionVersions } from './cache-key.js';
export { compose } from './compose.js';
export type {
  BuiltinRegistration,
  Composition,
  CompositionInput,
  EffectiveSkill,
  PluginState,
  CompositionReason,
  ReasonCode,
  ServerCatalogue,
  ServerPrompt,
  ServerTool,
  Source,
  WorkerTool,
  WorkerToolset,
} from './compose-input.js';
export { nameProblem } from './compose-tools.js';
export { diffSnapshots, type Changed, type ListDiff, type SnapshotDiff } from './diff.js';
export {
  fieldsConsulted,
  filterVerdicts,
  permitProblem,
  platformPermitsOf,
  type Filterable,
  type FilterVerdict,
  type Scene,
  type Subject,
  type SubjectField,
} from './filters.js';
export { excerptOf, fitResults, type Fit, type FitOptions, type Fittable, type Fitted } from './fit.js';
export { DEFAULT_AGENT, findTies, matchAgent, ruleMatches, type Binding, type Matching, type MessageFacts, type Tie } from './match.js';
export { isSecretKey, PREVIEW_BYTES, previewArguments, REDACTED, type Preview } from './redact.js';
export { askedBackId, askedBackOf, maySample, rootsFor } from './asked-back.js';
export { splitFrontmatter } from './frontmatter.js';
