import { AgentId, Condition, demands, Limits, PermissionMode, Policy, ServerRequests, Slug, type Rule } from '@ambit/contracts';
import { z } from 'zod';
import { formatDuration, parseDuration } from './duration.js';

/**
 * A policy as people write it, over HTTP and in ambit.yaml. Where the stored form has `null`, `[]` and names, this one says `all`, `none` or a list:
 * `null` and a blank are errors, and what is missing is none.
 */

const Name = z.string().trim().min(1, 'a name may not be blank').max(200);
const LIST_HELP = 'write all, none or a list of names; null and a blank are errors, and leaving it out means none';
const WrittenNames = z
  .union([z.literal('all'), z.literal('none'), z.array(Name).max(1_000)], { error: LIST_HELP })
  .refine((list) => typeof list === 'string' || new Set(list).size === list.length, 'a name stands twice in the list');
const WrittenList = WrittenNames.default('none');
type WrittenList = z.output<typeof WrittenList>;

const Duration = z
  .string()
  .refine((text) => parseDuration(text) !== null, 'a whole number and s, m, h or d, as in 30m')
  .refine((text) => {
    const milliseconds = parseDuration(text) ?? 1_000;
    return milliseconds >= 1_000 && milliseconds <= 30 * 86_400_000;
  }, 'between 1s and 30d');

const glob = z.string().min(1).max(128);
const WrittenRule = z
  .strictObject({
    deny: glob.optional(),
    ask: glob.optional(),
    allow: glob.optional(),
    when: z.record(z.string().min(1).max(200), Condition).optional(),
    approvers: z
      .array(Name.regex(/^(requester|user:\S+|group:\S+)$/, 'requester, user:<id> or group:<id>'))
      .max(50)
      .optional(),
    not: z.literal('requester').optional(),
    expires: Duration.optional(),
  })
  .refine(
    (rule) => [rule.deny, rule.ask, rule.allow].filter((tool) => tool !== undefined).length === 1,
    'a rule has exactly one of deny, ask and allow',
  )
  .refine(
    (rule) => rule.ask !== undefined || (rule.approvers === undefined && rule.not === undefined && rule.expires === undefined),
    'approvers, not and expires belong to ask alone',
  );
type WrittenRule = z.output<typeof WrittenRule>;

const WrittenSubagent = z.strictObject({
  agent: z.union([z.literal('self'), AgentId]),
  // Left out, the slot narrows nothing: the policy of the agent it names already says what that one may use.
  servers: WrittenNames.optional(),
  description: z.string().max(200).default(''),
  ...demands,
});

/** Slots by name, or as a list in which the first of two with one name counts and a blank name none. */
const WrittenSubagents = z.union([
  z.record(Slug, WrittenSubagent),
  z
    .array(WrittenSubagent.extend({ name: z.string().max(200) }))
    .max(100)
    .transform((list, context) => {
      const slots: Record<string, z.output<typeof WrittenSubagent>> = {};
      for (const { name, ...slot } of list) {
        const id = name.trim();
        if (id === '' || Object.hasOwn(slots, id)) continue;
        if (!Slug.safeParse(id).success)
          context.addIssue({ code: 'custom', message: `the name "${id}" is none: lower-case letters, digits and hyphens` });
        slots[id] = slot;
      }
      return slots;
    }),
]);

/** The body of an agent's policy over HTTP, and its part of an agent in ambit.yaml. */
export const PolicyDocument = z
  .strictObject({
    mode: PermissionMode.default('default'),
    rules: z.array(WrittenRule).max(500).default([]),
    servers: WrittenList,
    plugins: WrittenList,
    skills: WrittenList,
    tools: z.strictObject({ disabled: z.array(Name).max(500).default([]), deferred: z.array(Name).max(100).default([]) }).prefault({}),
    aliases: z.record(z.string().regex(/^[A-Za-z0-9_-]{1,64}$/), z.string().min(1).max(128)).default({}),
    subagents: WrittenSubagents.default({}),
    presets: Policy.shape.presets,
    limits: Limits.prefault({}),
    whileBusy: z.enum(['queue', 'refuse', 'steer']).default('queue'),
    serverRequests: ServerRequests.optional(),
  })
  .meta({ id: 'PolicyDocument' });
export type PolicyDocument = z.output<typeof PolicyDocument>;

/** `all` → null, `none` → []. */
export function listFromDocument(list: WrittenList): string[] | null {
  if (list === 'all') return null;
  return list === 'none' ? [] : [...list];
}

/** null → `all`, [] → `none`. */
export function listToDocument(list: readonly string[] | null): WrittenList {
  if (list === null) return 'all';
  return list.length === 0 ? 'none' : [...list];
}

function ruleFromDocument(rule: WrittenRule): Rule {
  const decision = rule.deny !== undefined ? 'deny' : rule.ask !== undefined ? 'ask' : 'allow';
  return {
    decision,
    tool: rule.deny ?? rule.ask ?? rule.allow ?? '',
    when: { ...rule.when },
    approvers: [...(rule.approvers ?? [])],
    not: rule.not ?? null,
    expiresMs: rule.expires === undefined ? null : parseDuration(rule.expires),
  };
}

/** A stored rule as a person would write it; also the text that verdicts and audit records quote. */
export function ruleToDocument(rule: Rule): WrittenRule {
  return {
    [rule.decision]: rule.tool,
    ...(Object.keys(rule.when).length > 0 ? { when: rule.when } : {}),
    ...(rule.approvers.length > 0 ? { approvers: rule.approvers } : {}),
    ...(rule.not === null ? {} : { not: rule.not }),
    ...(rule.expiresMs === null ? {} : { expires: formatDuration(rule.expiresMs) }),
  };
}

/** The stored form of a written policy. */
export function policyFromDocument(document: PolicyDocument): Policy {
  return Policy.parse({
    ...document,
    rules: document.rules.map(ruleFromDocument),
    servers: listFromDocument(document.servers),
    plugins: listFromDocument(document.plugins),
    skills: listFromDocument(document.skills),
    disabledTools: document.tools.disabled,
    deferredTools: document.tools.deferred,
    subagents: mapValues(document.subagents, (slot) => ({
      ...slot,
      servers: slot.servers === undefined ? undefined : listFromDocument(slot.servers),
    })),
  });
}

/** The written form of a stored policy; {@link policyFromDocument} gives the same policy back. */
export function policyToDocument(policy: Policy): PolicyDocument {
  const { disabledTools, deferredTools, rules, servers, plugins, skills, subagents, ...same } = policy;
  return {
    ...same,
    rules: rules.map(ruleToDocument),
    servers: listToDocument(servers),
    plugins: listToDocument(plugins),
    skills: listToDocument(skills),
    tools: { disabled: [...disabledTools], deferred: [...deferredTools] },
    subagents: mapValues(subagents, ({ servers: own, ...slot }) => (own === undefined ? slot : { ...slot, servers: listToDocument(own) })),
  };
}

function mapValues<V, W>(record: Readonly<Record<string, V>>, change: (value: V) => W): Record<string, W> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value)]));
}
