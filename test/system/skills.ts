import type { Bus } from '@ambit/bus';
import { skillStore, type Skill } from '@ambit/contracts';
import { createHash } from 'node:crypto';

/** Stores a skill of one file in an agent's scope. */
export async function putSkill(
  bus: Bus,
  agentId: string,
  { name, body = 'Do it.', frontmatter = '' }: { readonly name: string; readonly body?: string; readonly frontmatter?: string },
): Promise<Skill> {
  const bytes = Buffer.from(`---\nname: ${name}\ndescription: How to ${name}.\n${frontmatter}---\n\n${body}\n`);
  const digest = createHash('sha256').update(bytes).digest('hex');
  await bus.call(skillStore.putBlob, { digest, bytes: bytes.byteLength, offset: 0, data: bytes.toString('base64') });
  return bus.call(skillStore.putSkill, { agentId, files: [{ path: 'SKILL.md', mode: 'file', bytes: bytes.byteLength, digest }] });
}
