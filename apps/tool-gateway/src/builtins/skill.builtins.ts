import type { Bus } from '@ambit/bus';
import { Fault, SkillName, skillStore, type Output } from '@ambit/contracts';
import { z } from 'zod';
import { clean } from '../domain/untrusted.js';
import { viewServerSkill } from './server-skill.js';
import { errorResult, objectSchema, textResult, type Builtin } from './builtin.js';

const ViewInput = z.object({
  name: z.string(),
  path: z.string().min(1).max(1_024).default('SKILL.md'),
  offset: z.int().min(0).default(0),
  arguments: z.string().max(4_000).default(''),
});
const ListInput = z.object({ query: z.string().max(200).default('') });
const common = {
  exposure: 'user-configurable',
  effect: 'read',
  access: 'session',
  parallel: true,
  version: 1,
  requiresConfirmation: false,
  needsSkills: true,
} as const;
/** As much of a file as one answer shows. */
const PART_BYTES = 64 * 1024;

/** Lists and reads the skills that the run's snapshot pins; another agent's, or a newer version, is not reachable by name. */
export function skillBuiltins(bus: Bus): Builtin[] {
  return [
    {
      kind: 'model',
      registration: {
        ...common,
        name: 'skill_list',
        description: 'The skills of this session, each with what it is for. Read one with skill_view before you follow it.',
        inputSchema: objectSchema({ query: { type: 'string', description: 'Only those whose name or description has these words' } }),
      },
      handler: async (input, { authority, snapshot }) => {
        const words = ListInput.parse(input).query.toLowerCase().split(/\s+/);
        const allowed = new Set(authority.skills.map((skill) => skill.name));
        const skills = snapshot.skills
          .filter(({ name, origin }) => origin === 'mcp' || allowed.has(name))
          .filter(({ name, description }) => words.every((word) => `${name} ${description}`.toLowerCase().includes(word)))
          .map(({ name, description, origin, scripts = [] }) => ({
            name,
            // What a server says of its skill is its word alone.
            description: origin === 'mcp' ? `${clean(description)} (offered by a server)` : description,
            origin,
            ...(scripts.length === 0 ? {} : { scripts }),
          }));
        return textResult(skills.length === 0 ? 'This session has no skills.' : skills.map(lineOf).join('\n'), { skills });
      },
    },
    {
      kind: 'model',
      registration: {
        ...common,
        name: 'skill_view',
        description: 'Read a file of a skill; without a path its SKILL.md, which says what to do.',
        inputSchema: objectSchema(
          {
            name: { type: 'string' },
            path: { type: 'string', description: 'Relative path within the skill' },
            offset: { type: 'integer', minimum: 0 },
            arguments: { type: 'string', description: 'Of a server’s skill: what stands in place of $ARGUMENTS' },
          },
          ['name'],
        ),
      },
      handler: async (input, context) => {
        const { authority, snapshot, signal } = context;
        const wanted = ViewInput.parse(input);
        const remote = snapshot.skills.find(({ name, origin }) => name === wanted.name && origin === 'mcp');
        if (remote !== undefined) return viewServerSkill(bus, { skill: remote, wanted: { ...wanted, length: PART_BYTES } }, context);
        const skill = authority.skills.find((one) => one.name === wanted.name);
        if (skill === undefined || !SkillName.safeParse(skill.name).success)
          return errorResult(`This session has no skill of that name; skill_list shows what it has.`);
        try {
          const file = await bus.call(
            skillStore.readSkill,
            {
              agentId: skill.agentId,
              name: skill.name,
              digest: skill.digest,
              path: wanted.path,
              offset: wanted.offset,
              length: PART_BYTES,
            },
            { signal },
          );
          const files = file.files.filter((path) => path !== wanted.path);
          const part = textOf(file, wanted.offset);
          if (part === undefined) return errorResult(`${wanted.path} is not text (${file.bytes} bytes).`);
          const more = part.next === null ? '' : `\n\n(The file goes on: call again with offset ${part.next}.)`;
          const others = wanted.path === 'SKILL.md' && files.length > 0 ? `\n\nOther files of this skill: ${files.join(', ')}` : '';
          return textResult(`${part.text}${more}${others}`, {
            name: skill.name,
            path: wanted.path,
            digest: skill.digest,
            bytes: file.bytes,
            next: part.next,
          });
        } catch (error) {
          if (!(error instanceof Fault)) throw error;
          if (error.code === 'FILE_NOT_FOUND') return errorResult(`The skill ${skill.name} has no file ${wanted.path}.`);
          if (error.code === 'SKILL_NOT_FOUND') return errorResult(`The skill ${skill.name} was taken away since this run began.`);
          throw error;
        }
      },
    },
  ];
}

function lineOf({
  name,
  description,
  scripts,
}: {
  readonly name: string;
  readonly description: string;
  readonly scripts?: string[];
}): string {
  return `${name}: ${description}${scripts === undefined ? '' : ` (skill_run may run ${scripts.join(', ')})`}`;
}

interface Part {
  readonly text: string;
  /** Where the file goes on; null at its end. */
  readonly next: number | null;
}

/** A range of a file as text, cut between characters; undefined where the file is no text. */
function textOf(file: Output<typeof skillStore.readSkill>, offset: number): Part | undefined {
  if (file.text !== undefined) return { text: file.text, next: file.next };
  const bytes = Buffer.from(file.data ?? '', 'base64');
  const end = file.next === null ? bytes.length : lastBoundary(bytes);
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes.subarray(0, end));
    return { text, next: file.next === null ? null : offset + end };
  } catch {
    return undefined;
  }
}

/** Where the last character of UTF-8 that may be cut begins; it comes whole with the next range. */
function lastBoundary(bytes: Uint8Array): number {
  let start = bytes.length - 1;
  while (start > 0 && bytes.length - start < 4 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start--;
  return (bytes[start] ?? 0) < 0x80 ? bytes.length : start;
}
