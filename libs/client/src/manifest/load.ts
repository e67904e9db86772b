import { dirname, resolve } from 'node:path';
import { DesiredState, type FileEntry } from '@ambit/contracts';
import { z } from 'zod';
import { causeOf } from '../cause.js';
import type { AmbitClient } from '../client.js';
import type { BlobKind } from '../upload.js';
import { desiredStateOf } from './desired-state.js';
import { ManifestDocument } from './document.js';
import { expandAll } from './expand.js';
import { readFolder, readPlainFile } from './folder.js';
import { problemsOf, type Problem } from './problem.js';
import { takeOutUnsupported } from './unsupported.js';
import { ManifestInvalid, YamlFile } from './yaml-file.js';

export interface ManifestBlob {
  readonly kind: BlobKind;
  readonly digest: string;
  readonly bytes: Uint8Array;
}
/** A desired state, and the bytes that the server needs to apply it. */
export interface Manifest {
  readonly desired: DesiredState;
  readonly blobs: readonly ManifestBlob[];
}
export interface LoadOptions {
  /** What `${NAME}` stands for. @default process.env */
  readonly environment?: Readonly<Record<string, string | undefined>>;
}

const INSTRUCTION_BYTES = 256 * 1024;

/** Reads ambit.yaml and the files that it names. Throws {@link ManifestInvalid} with every problem found, each with its line and path. */
export async function loadManifest(path: string, options: LoadOptions = {}): Promise<Manifest> {
  const file = await YamlFile.read(path);
  const { rest, problems: unsupported } = takeOutUnsupported(file.value);
  const { value, problems: missing } = expandAll(rest, options.environment ?? process.env);
  const parsed = ManifestDocument.safeParse(value);
  const problems: Problem[] = [...unsupported, ...missing];
  if (!parsed.success) {
    // Where a variable is missing, what its text lacks says nothing more.
    const places = new Set(missing.map(({ path }) => path.join('.')));
    const wrong = problemsOf(parsed.error, ManifestDocument, value).filter((problem) => !places.has(problem.path.join('.')));
    throw invalid(file, [...problems, ...wrong]);
  }
  const read = await readFiles(parsed.data, dirname(resolve(path)));
  problems.push(...read.problems);
  if (problems.length > 0) throw invalid(file, problems);
  try {
    return { desired: desiredStateOf(parsed.data, read), blobs: read.blobs };
  } catch (error) {
    if (error instanceof z.ZodError) throw invalid(file, problemsOf(error, DesiredState, value));
    throw error;
  }
}

/** Sends the bytes that a manifest names; those that the server has cost one small request each. */
export async function uploadManifest(client: AmbitClient, manifest: Manifest, signal?: AbortSignal): Promise<void> {
  for (const blob of manifest.blobs) await client.upload(blob.kind, blob.bytes, signal);
}

interface ReadFiles {
  readonly plugins: Map<string, readonly FileEntry[]>;
  readonly skills: Map<string, readonly FileEntry[]>;
  readonly instructions: Map<string, string>;
  readonly blobs: readonly ManifestBlob[];
  readonly problems: readonly Problem[];
}

async function readFiles(manifest: ManifestDocument, folder: string): Promise<ReadFiles> {
  const read = {
    plugins: new Map<string, readonly FileEntry[]>(),
    skills: new Map<string, readonly FileEntry[]>(),
    instructions: new Map<string, string>(),
  };
  const blobs = new Map<string, ManifestBlob>();
  const problems: Problem[] = [];
  const attempt = async (path: readonly string[], work: () => Promise<void>): Promise<void> => {
    await work().catch((error: unknown) => problems.push({ path, text: error instanceof Error ? error.message : causeOf(error) }));
  };
  const tree = async (kind: BlobKind, source: string): Promise<readonly FileEntry[]> => {
    const files = await readFolder(resolve(folder, source));
    for (const { entry, bytes } of files) blobs.set(`${kind} ${entry.digest}`, { kind, digest: entry.digest, bytes });
    return files.map(({ entry }) => entry);
  };
  for (const [id, { source }] of Object.entries(manifest.plugins))
    await attempt(['plugins', id, 'source'], async () => void read.plugins.set(id, await tree('plugin', source)));
  for (const [name, { source }] of Object.entries(manifest.skills))
    await attempt(['skills', name, 'source'], async () => void read.skills.set(name, await tree('skill', source)));
  for (const [id, { instructions }] of Object.entries(manifest.agents)) {
    if (instructions === undefined) continue;
    await attempt(['agents', id, 'instructions'], async () => {
      const { bytes } = await readPlainFile(resolve(folder, instructions), INSTRUCTION_BYTES);
      read.instructions.set(id, new TextDecoder('utf-8', { fatal: true }).decode(bytes));
    });
  }
  return { ...read, blobs: [...blobs.values()], problems };
}

function invalid(file: YamlFile, problems: readonly Problem[]): ManifestInvalid {
  const inOrder = [...problems].sort((left, right) => file.lineOf(left.path) - file.lineOf(right.path));
  return new ManifestInvalid(inOrder.map((problem) => file.tell(problem)));
}
