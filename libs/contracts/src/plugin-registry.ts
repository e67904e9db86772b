import { z } from 'zod';
import { auditEvent, auditReading } from './audit.js';
import { event, rpc } from './kit/contract.js';
import { AgentPreset, Hex64, Instant, page, PageInput, ProjectId, SetName, Slug, Version } from './nouns.js';
import { FileEntry } from './skill-file.js';
import { skillStore } from './skill-store.js';

export const PluginId = z.string().regex(/^(?!.*(?:--|\.\.))[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/, 'as Agent Plugins 1.0.0 names plugins').max(64).meta({ id: 'PluginId' });
/** The format that a package came in. */
export const SourceFormat = z.enum(['agent-plugins-1.0.0', 'deepchat', 'claude-code', 'mcpb', 'mcp-registry']);
export type SourceFormat = z.output<typeof SourceFormat>;
/** A key whose signature on a package proves its publisher; `keyId` is the sha256 of the raw key. */
export const Publisher = z
  .object({ keyId: Hex64, publisher: Slug, publicKey: z.base64().length(44).meta({ description: 'A raw ed25519 public key: 32 bytes' }), addedAt: Instant })
  .meta({ id: 'Publisher' });
export type Publisher = z.output<typeof Publisher>;
/** `unavailable` keeps a person's choice in `wanted`; `uninstalled` keeps nothing. */
export const PluginState = z.enum(['enabled', 'disabled', 'unavailable']);
export const Plugin = z
  .object({
    id: PluginId,
    projectId: ProjectId,
    version: z.string().max(100),
    display: z.string().max(200),
    description: z.string().max(2_000),
    publisher: z.string().max(200).nullable(),
    sourceFormat: SourceFormat,
    digest: Hex64,
    signed: z.enum(['unsigned', 'verified']),
    /** The publisher of the trust store whose signature its files have. */
    signedBy: Slug.nullable().default(null),
    state: PluginState,
    wanted: z.enum(['enabled', 'disabled']),
    reason: z.string().max(1_000).nullable(),
    /** This very package failed here: it is tried again when it is enabled once more, or when another package is installed. */
    quarantined: z.boolean().default(false),
    contributes: z.object({ servers: z.array(z.string()), skills: z.array(z.string()), tools: z.array(z.string()), agents: z.array(z.string()) }),
    /** Values that only a person can give: each is stored as the secret of that name before it is switched on. */
    settings: z.array(z.object({ key: z.string().max(200), secret: Slug, title: z.string().max(200) })).max(200).default([]),
    /** What else lies in the package; it is shown, and nothing of it is run. */
    inert: z.array(z.object({ kind: z.string().max(40), path: z.string().max(1_024) })).max(200).default([]),
    warnings: z.array(z.string().max(500)).max(200),
    epoch: z.int(),
    fence: z.int(),
    set: SetName,
    revision: Version,
    installedAt: Instant,
    updatedAt: Instant,
  })
  .meta({ id: 'Plugin' });
export type Plugin = z.output<typeof Plugin>;

const pluginUnknown = { status: 404, retry: 'never', message: 'There is no such plugin' } as const;
const activation = { status: 409, retry: 'never', message: 'The plugin could not be activated; nothing of it is visible', data: z.object({ step: z.string(), reason: z.string() }) } as const;

export const pluginRegistry = {
  putBlob: rpc('ambit.rpc.plugin-registry.v1.blob.put', { summary: 'Upload a file or archive of a package, a chunk at a time', input: skillStore.putBlob.input, output: skillStore.putBlob.output, errors: skillStore.putBlob.errors }),
  installPlugin: rpc('ambit.rpc.plugin-registry.v1.plugin.install', {
    summary: 'Verify a package and install or update it, switched off unless it was on', input: z.object({ projectId: ProjectId.default('default'), files: z.array(FileEntry).max(4_096).optional(), archive: Hex64.optional(), unsigned: z.enum(['allow', 'refuse']).default('refuse').meta({ description: 'Whether a package without a publisher’s signature may be installed' }), publisher: Slug.optional().meta({ description: 'Whose signature it has to have' }), set: SetName.default(null) }), output: Plugin,
    errors: {
      PLUGIN_INVALID: { status: 400, retry: 'never', message: 'This is not a valid package', data: z.object({ path: z.string(), reason: z.string() }) },
      PLUGIN_TAKEN: { status: 409, retry: 'never', message: 'A plugin of this id is installed in another project', data: z.object({ projectId: ProjectId }) },
      PLUGIN_UNTRUSTED: { status: 403, retry: 'never', message: 'The package is not signed by a trusted publisher, and such ones are refused here', data: z.object({ reason: z.string() }) },
      BLOB_MISSING: { status: 400, retry: 'never', message: 'Upload these files first', data: z.object({ digests: z.array(Hex64) }) },
      ARCHIVE_REFUSED: { status: 400, retry: 'never', message: 'The archive is unsafe or too large', data: z.object({ reason: z.string() }) },
    }, timeoutMs: 60_000,
  }),
  getPlugin: rpc('ambit.rpc.plugin-registry.v1.plugin.get', { summary: 'One plugin', input: z.object({ id: PluginId }), output: Plugin, errors: { PLUGIN_UNKNOWN: pluginUnknown }, idempotent: true }),
  listPlugins: rpc('ambit.rpc.plugin-registry.v1.plugin.list', { summary: 'Plugins, a page at a time', input: z.object({ projectId: ProjectId.optional(), set: Slug.optional(), ...PageInput }), output: page(Plugin), idempotent: true }),
  enablePlugin: rpc('ambit.rpc.plugin-registry.v1.plugin.enable', { summary: 'Contribute everything or nothing', input: z.object({ id: PluginId }), output: Plugin, errors: { PLUGIN_UNKNOWN: pluginUnknown, ACTIVATION_FAILED: activation }, idempotent: true, timeoutMs: 60_000 }),
  disablePlugin: rpc('ambit.rpc.plugin-registry.v1.plugin.disable', { summary: 'Move the fence, revoke every slot everywhere, then answer', input: z.object({ id: PluginId }), output: Plugin, errors: { PLUGIN_UNKNOWN: pluginUnknown }, idempotent: true, timeoutMs: 60_000 }),
  uninstallPlugin: rpc('ambit.rpc.plugin-registry.v1.plugin.uninstall', { summary: 'Disable and forget', input: z.object({ id: PluginId }), output: z.object({ uninstalled: z.boolean() }), errors: { PLUGIN_UNKNOWN: pluginUnknown }, timeoutMs: 60_000 }),
  pluginSlots: rpc('ambit.rpc.plugin-registry.v1.slot.list', { summary: 'What enabled plugins contribute, for ingress', input: z.object({ projectId: ProjectId }), output: z.object({ epoch: z.int(), plugins: z.array(z.object({ id: PluginId, version: z.string(), digest: Hex64, state: PluginState, servers: z.array(z.string()), skills: z.array(z.string()), agents: z.array(AgentPreset).max(100) })).max(1_000) }), idempotent: true }),
  readPackage: rpc('ambit.rpc.plugin-registry.v1.package.read', { summary: 'A page of the tree of an installed package, or a range of one file by digest; for runners', input: z.object({ id: PluginId, digest: Hex64, file: Hex64.optional(), offset: z.int().min(0).default(0) }), output: z.object({ tree: z.array(FileEntry).optional(), data: z.string().optional(), next: z.int().nullable() }), errors: { PLUGIN_UNKNOWN: pluginUnknown }, idempotent: true }),

  trustPublisher: rpc('ambit.rpc.plugin-registry.v1.publisher.trust', {
    summary: 'Take a publisher’s key into the trust store', input: Publisher.pick({ publisher: true, publicKey: true }), output: Publisher,
    errors: { KEY_REFUSED: { status: 409, retry: 'never', message: 'This key cannot be trusted', data: z.object({ reason: z.string() }) } }, idempotent: true,
  }),
  listPublishers: rpc('ambit.rpc.plugin-registry.v1.publisher.list', { summary: 'The trust store, a page at a time', input: z.object({ ...PageInput }), output: page(Publisher), idempotent: true }),
  distrustPublisher: rpc('ambit.rpc.plugin-registry.v1.publisher.distrust', { summary: 'Take a key out of the trust store: nothing that it signed is switched on any more', input: Publisher.pick({ keyId: true }), output: z.object({ removed: z.boolean() }), idempotent: true, timeoutMs: 60_000 }),

  pluginChanged: event('ambit.evt.plugin-registry.v1.plugin.changed.{pluginId}', { summary: 'A plugin was installed, switched, became unavailable or left', payload: z.object({ pluginId: PluginId, projectId: ProjectId, state: z.enum(['enabled', 'disabled', 'unavailable', 'uninstalled']), epoch: z.int(), fence: z.int(), at: Instant }) }),
  listAudit: auditReading('plugin-registry'),
  auditAppended: auditEvent('plugin-registry'),
};
