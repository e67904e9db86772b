import type { Bus } from '@ambit/bus';
import type { SnapshotSkill } from '@ambit/capability';
import { Fault, mcpBroker } from '@ambit/contracts';
import type { ToolResult } from '../domain/call-end.js';
import { framed, withArguments, withoutFrontmatter } from '../domain/untrusted.js';
import { errorResult, textResult, type BuiltinContext } from './builtin.js';

const MARK_CHARACTERS = 16;

export interface WantedFile {
  readonly path: string;
  readonly offset: number;
  readonly arguments: string;
  readonly length: number;
}

/** Reads a file of a server's skill through that server, and frames it as what it is: somebody else's words. Nothing of it is written to disk or run. */
export async function viewServerSkill(
  bus: Bus,
  { skill, wanted }: { readonly skill: SnapshotSkill; readonly wanted: WantedFile },
  { authority, operationId, signal }: BuiltinContext,
): Promise<ToolResult> {
  const { path, offset, length } = wanted;
  try {
    const { runId, sessionId } = authority;
    const file = await bus.call(mcpBroker.readServerSkill, { runId, sessionId, name: skill.name, path, offset, length }, { signal });
    const isMain = path === 'SKILL.md';
    const body = isMain && offset === 0 ? withoutFrontmatter(file.text) : file.text;
    const text = framed(isMain ? withArguments(body, wanted.arguments) : body, {
      server: file.server,
      uri: file.uri,
      mark: operationId.slice(0, MARK_CHARACTERS),
    });
    const more = file.next === null ? '' : `\n\n(The file goes on: call again with offset ${file.next}.)`;
    const others = file.files.filter((other) => other !== 'SKILL.md');
    const beside = isMain && others.length > 0 ? `\n\nOther files of this skill: ${others.join(', ')}` : '';
    return textResult(`${text}${more}${beside}`, {
      name: skill.name,
      origin: 'mcp',
      server: file.server,
      uri: file.uri,
      path,
      digest: skill.digest,
      verified: file.verified,
      bytes: file.bytes,
      next: file.next,
    });
  } catch (error) {
    const told = error instanceof Fault ? TOLD[error.code] : undefined;
    if (told === undefined) throw error;
    return errorResult(`${skill.name}: ${told}`);
  }
}

/** What a model can do something about. */
const TOLD: Readonly<Record<string, string>> = {
  SKILL_GONE: 'the skill was taken away or changed since this run began.',
  SKILL_NOT_ACTIVE: 'read its SKILL.md first; its other files are there for whoever follows it.',
  FILE_NOT_FOUND: 'it has no such file.',
  DIGEST_MISMATCH: 'its server sent something else than it said, so nothing of it is shown.',
  FILE_TOO_LARGE: 'the file is larger than may be read.',
  NOT_TEXT: 'the file is not text.',
  TOOL_NOT_IN_SNAPSHOT: 'this session has no skill of that name; skill_list shows what it has.',
  SERVER_NOT_ALLOWED: 'the agent’s policy does not allow its server any more.',
  SERVER_UNAVAILABLE: 'its server cannot be reached just now.',
  TOOL_GONE: 'its server was taken away.',
  TARGET_CHANGED: 'its server is another one now.',
};
