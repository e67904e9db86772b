import { createHash } from 'node:crypto';
import type { Call } from '@ambit/bus';
import { fault, Fault, platformFault, refusals, toolGateway, type Output, type Parsed } from '@ambit/contracts';
import { Inject, Injectable } from '@nestjs/common';
import { ArtifactRepository } from './artifact.repository.js';
import { ArtifactStore, type ArtifactRange } from './artifact.store.js';
import { callerOf, RunAdmission } from './run.admission.js';

type Reading = Parsed<typeof toolGateway.readArtifact>;
type Writing = Parsed<typeof toolGateway.writeArtifact>;

const MAX_UPLOAD_BYTES = 32 * 1024 * 1024;
const MAX_CHUNK_BYTES = 256 * 1024;

/** Ranges of artifacts for workers, who reach no object store, and for services. */
@Injectable()
export class ArtifactService {
  constructor(
    @Inject(RunAdmission) private readonly admission: RunAdmission,
    @Inject(ArtifactStore) private readonly store: ArtifactStore,
    @Inject(ArtifactRepository) private readonly repository: ArtifactRepository,
  ) {}

  async readForRun(input: Reading, call: Call<typeof toolGateway.readArtifact>): Promise<Output<typeof toolGateway.readArtifact>> {
    await this.#admit(input, call.keys.agentId);
    return this.read(input);
  }

  async read({
    sessionId,
    digest,
    offset,
    length,
  }: Parsed<typeof toolGateway.getArtifact>): Promise<Output<typeof toolGateway.getArtifact>> {
    const range = await this.store.read({ sessionId, digest, offset, length });
    if (range === undefined) throw fault(toolGateway.getArtifact, 'ARTIFACT_UNKNOWN');
    return encoded(range);
  }

  /** Keeps a part, wherever it arrives; the last one closes the upload when the parts are whole and hash to the digest. */
  async write(input: Writing, call: Call<typeof toolGateway.writeArtifact>): Promise<Output<typeof toolGateway.writeArtifact>> {
    await this.#admit(input, call.keys.agentId);
    const data = Buffer.from(input.data, 'base64');
    if (data.length > MAX_CHUNK_BYTES) throw platformFault('TOO_LARGE', { limitBytes: MAX_CHUNK_BYTES, actualBytes: data.length });
    const upload = { sessionId: input.sessionId, uploadId: input.uploadId };
    const bytes = await this.repository.putPart(upload, input.offset, data);
    if (bytes > MAX_UPLOAD_BYTES) {
      await this.repository.dropParts(upload);
      throw platformFault('TOO_LARGE', { limitBytes: MAX_UPLOAD_BYTES, actualBytes: bytes });
    }
    if (!input.last) return { stored: false, bytes };
    const whole = wholeOf(await this.repository.parts(upload));
    if (whole === undefined || createHash('sha256').update(whole).digest('hex') !== input.digest)
      throw fault(toolGateway.writeArtifact, 'ARTIFACT_DIGEST');
    await this.store.put(input.sessionId, whole);
    await this.repository.dropParts(upload);
    return { stored: true, bytes: whole.length };
  }

  async #admit(input: Reading | Writing, agentId: string): Promise<void> {
    const admitted = await this.admission.admit(callerOf(agentId, input), input);
    if (!(admitted instanceof Fault)) return;
    // Ended runs are told nothing more than that they are not running.
    throw admitted.code === 'TURN_ENDED' ? new Fault('STALE_INSTANCE', refusals.STALE_INSTANCE) : admitted;
  }
}

function encoded({ data, bytes, next }: ArtifactRange): { data: string; bytes: number; next: number | null } {
  return { data: data.toString('base64'), bytes, next };
}

/** The parts one after another; undefined where one is missing or two overlap. */
function wholeOf(parts: readonly { readonly position: number; readonly data: Uint8Array }[]): Buffer | undefined {
  let end = 0;
  for (const { position, data } of parts) {
    if (position !== end) return undefined;
    end += data.length;
  }
  return Buffer.concat(parts.map(({ data }) => data));
}
