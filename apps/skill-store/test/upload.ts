import { createHash } from 'node:crypto';
import type { Bus } from '@ambit/bus';
import { skillStore, type FileEntry } from '@ambit/contracts';

/** Uploads texts by path; gives the entries that skill.put takes. */
export async function upload(bus: Bus, files: Readonly<Record<string, string>>): Promise<FileEntry[]> {
  const entries: FileEntry[] = [];
  for (const [path, text] of Object.entries(files)) {
    const bytes = Buffer.from(text);
    const digest = createHash('sha256').update(bytes).digest('hex');
    await bus.call(skillStore.putBlob, { digest, bytes: bytes.byteLength, offset: 0, data: bytes.toString('base64') });
    entries.push({ path, mode: 'file', bytes: bytes.byteLength, digest });
  }
  return entries;
}

export const skillText = (name: string, body = 'Do it.', extra = '') =>
  `---\nname: ${name}\ndescription: How to ${name}.\n${extra}---\n\n${body}\n`;
