import { PolicyDocument } from '@ambit/capability';
import {
  AgentDocument,
  AgentId,
  Authorization,
  demands,
  Instances,
  Limits,
  MatchRule,
  matchRules,
  Notify,
  PluginId,
  ProjectId,
  Role,
  RoleGrant,
  ScriptPath,
  SecretRef,
  ServerSpec,
  SkillName,
  Slug,
  Timeouts,
} from '@ambit/contracts';
import { z } from 'zod';
import { Duration, Size } from './units.js';

/** ambit.yaml as people write it: short forms, files by their path, durations and sizes with their unit. */

const text = (longest: number) => z.string().min(1).max(longest);
const Source = text(1_024).meta({ description: 'A path, from the folder that this file is in' });
const Value = z.union([z.string().max(16 * 1024), z.strictObject(SecretRef.shape)], { error: 'a text, or { secret: <name> }' });
const Values = z.record(z.string().min(1).max(128), Value);

const SecretSource = z.discriminatedUnion(
  'from',
  [
    z.strictObject({ from: z.literal('env'), key: text(500) }),
    z.strictObject({ from: z.literal('file'), path: text(500) }),
    z.strictObject({ from: z.literal('store') }),
  ],
  { error: '{ from: env, key: NAME }, { from: file, path: /a/path } or { from: store }' },
);

/** As people call it: a person signs in. */
const [none, interactive, ...byItself] = Authorization.options;
const Auth = z.discriminatedUnion('type', [interactive.extend({ type: z.literal('oauth') }), none, ...byItself]);

const ServerEntry = z
  .strictObject({
    url: z
      .url({ error: 'an address that begins with http:// or https://', protocol: /^https?$/ })
      .max(2_048)
      .optional(),
    type: z.enum(['http', 'sse']).optional().meta({ description: 'How a server at `url` speaks; http where it is left out' }),
    headers: Values.optional(),
    auth: Auth.optional().meta({
      description:
        'How we come to an access token: `oauth` by a person’s sign-in; where it is left out, the same, once for everybody, if the server asks',
    }),
    command: text(1_024).optional(),
    args: z.array(z.string().max(8_192)).max(256).optional(),
    env: Values.optional(),
    display: ServerSpec.shape.display,
    enabled: ServerSpec.shape.enabled,
    readOnly: ServerSpec.shape.readOnly,
    holdChanges: ServerSpec.shape.holdChanges,
    argumentsKept: ServerSpec.shape.argumentsKept,
    ...demands,
    instances: z
      .strictObject({
        scope: Instances.shape.scope,
        max: Instances.shape.max,
        idleStop: Duration.optional(),
        memory: Size.optional(),
      })
      .optional(),
    timeouts: z.strictObject({ start: Duration.optional(), call: Duration.optional(), onProgress: Timeouts.shape.onProgress }).optional(),
  })
  .refine((server) => (server.url === undefined) !== (server.command === undefined), 'a server has either url or command')
  .refine(
    (server) => server.url === undefined || (server.args === undefined && server.env === undefined),
    'args and env belong to command; a server at a url takes headers',
  )
  .refine(
    (server) => server.command === undefined || (server.headers === undefined && server.type === undefined && server.auth === undefined),
    'headers, type and auth belong to url; a command takes args and env',
  );
export type ServerEntry = z.output<typeof ServerEntry>;

const AgentEntry = z.strictObject({
  ...PolicyDocument.shape,
  limits: z.strictObject(Limits.shape).prefault({}),
  kind: AgentDocument.shape.kind,
  enabled: AgentDocument.shape.enabled,
  model: AgentDocument.shape.model,
  instructions: Source.optional(),
  match: matchRules(
    z
      .strictObject(MatchRule.shape)
      .refine((rule) => Object.values(rule).some((value) => value !== undefined), 'a match rule needs at least one field'),
  ).default([]),
});
export type AgentEntry = z.output<typeof AgentEntry>;

export const ManifestDocument = z
  .strictObject({
    apiVersion: z.literal('ambit/v1'),
    set: Slug,
    project: ProjectId.default('default'),
    secrets: z.record(Slug, SecretSource).default({}),
    servers: z.record(Slug, ServerEntry).default({}),
    plugins: z
      .record(
        PluginId,
        z.strictObject({
          source: Source,
          version: text(100).optional(),
          publisher: Slug.optional().meta({ description: 'The publisher of the trust store whose signature the package has to have' }),
          unsigned: z.enum(['allow', 'refuse']).default('refuse'),
          enabled: z.boolean().default(true),
        }),
      )
      .default({}),
    skills: z
      .record(
        SkillName,
        z.strictObject({
          source: Source,
          scripts: z
            .array(ScriptPath)
            .max(200)
            .default([])
            .meta({ description: 'Scripts of it that the agents may run with skill_run, as they are in these files' }),
        }),
      )
      .default({}),
    agents: z.record(AgentId, AgentEntry).default({}),
    access: z
      .array(
        z.strictObject({
          who: RoleGrant.shape.who,
          role: Role,
          agents: z.array(AgentId).max(1_000).optional(),
          onBehalfOf: z.array(z.string().min(1).max(200)).max(100).default([]),
        }),
      )
      .max(1_000)
      .default([]),
    notify: z.array(z.strictObject(Notify.shape)).max(100).default([]),
  })
  .meta({ title: 'ambit.yaml', description: 'The whole desired state of one set' });
export type ManifestDocument = z.output<typeof ManifestDocument>;
