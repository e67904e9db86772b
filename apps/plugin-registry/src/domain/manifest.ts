import { AgentPreset, PluginId, SourceFormat } from '@ambit/contracts';
import { z } from 'zod';
import { PluginServer } from './server-transport.js';

/** What a package holds and Ambit runs nothing of: it is shown. */
const Inert = z.object({
  kind: z.enum(['agent', 'command', 'hook', 'monitor', 'language-server', 'settings-page', 'prompt']),
  path: z.string(),
});

/** What may be said of a tool in a package; what it means is for an agent's policy to say. */
const ToolPolicy = z.object({ server: z.string(), tools: z.record(z.string(), z.enum(['allow', 'ask', 'deny'])) });

/** A value that an administrator gives, as a secret of this name. */
const Setting = z.object({ key: z.string(), secret: z.string(), title: z.string() });
export type Setting = z.output<typeof Setting>;

/** A package as we understood it, whatever its format; `warnings` say what was left out and why. */
export const Manifest = z.object({
  id: PluginId,
  version: z.string(),
  display: z.string(),
  description: z.string(),
  publisher: z.string().nullable(),
  sourceFormat: SourceFormat.default('agent-plugins-1.0.0'),
  servers: z.array(PluginServer).max(64),
  /** Folders that hold a SKILL.md, below the root. */
  skills: z.array(z.string()).max(200),
  /** Specialists that agents may start as subagents. */
  agents: z.array(AgentPreset).max(100).default([]),
  /** Kinds of what it contributes without having declared them; such a package is not switched on. */
  undeclared: z.array(z.string()).max(10).default([]),
  /** `linux` or `linux/x64`, of which one has to fit; null where it says nothing. */
  platforms: z.array(z.string()).max(50).nullable().default(null),
  /** The oldest Ambit that it works with. */
  engine: z.string().nullable().default(null),
  settings: z.array(Setting).max(200).default([]),
  toolPolicies: z.array(ToolPolicy).max(64).default([]),
  inert: z.array(Inert).max(200).default([]),
  warnings: z.array(z.string()).max(200),
});
export type Manifest = z.output<typeof Manifest>;
/** What an adapter of a format makes of a package; the rest is the same for all formats. */
export type Draft = z.input<typeof Manifest>;
