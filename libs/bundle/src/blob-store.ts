import { createHash } from 'node:crypto';
import { fault, skillStore, type FileEntry, type Parsed, type Returns } from '@ambit/contracts';
import { schemaOf, type RawSql } from '@ambit/db';

export type BlobPart = Parsed<typeof skillStore.putBlob>;

/** sha256 of bytes, 64 lower-case hexadecimal digits. */
export function digestOfBytes(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** Content-addressed bytes in an owner's tables `blob` and `blob_chunk`: uploaded in order, readable once they hash to their digest. */
export class BlobStore {
  readonly #schema: string;
  constructor(
    private readonly db: RawSql,
    owner: string,
  ) {
    this.#schema = `"${schemaOf(owner)}"`;
  }

  /** Takes the next part of a blob. The same part twice is harmless; a blob that is complete takes nothing more. */
  async put(part: BlobPart): Promise<Returns<typeof skillStore.putBlob>> {
    const { digest, bytes, offset } = part;
    const data = Buffer.from(part.data, 'base64');
    await this.db.$executeRawUnsafe(
      `INSERT INTO ${this.#schema}."blob" ("digest", "bytes") VALUES ($1, $2) ON CONFLICT DO NOTHING`,
      digest,
      bytes,
    );
    const { complete, have } = await this.#state(digest);
    if (complete) return { have, complete: true };
    if (offset > have || offset + data.byteLength > bytes) throw fault(skillStore.putBlob, 'BLOB_OFFSET', { have });
    if (offset === have && data.byteLength > 0) {
      await this.db.$executeRawUnsafe(
        `WITH added AS (INSERT INTO ${this.#schema}."blob_chunk" ("digest", "offset", "data") VALUES ($1, $2, $3) ON CONFLICT DO NOTHING RETURNING 1)
         UPDATE ${this.#schema}."blob" SET "have" = $2 + $4 WHERE "digest" = $1 AND "have" = $2 AND EXISTS (SELECT 1 FROM added)`,
        digest,
        offset,
        data,
        data.byteLength,
      );
    }
    const now = await this.#state(digest);
    return now.have < bytes ? { have: now.have, complete: false } : this.#close(digest, bytes);
  }

  /** Stores bytes that this process holds whole; gives their digest. */
  async add(bytes: Uint8Array): Promise<string> {
    const digest = digestOfBytes(bytes);
    if (bytes.byteLength > 0 && bytes.byteLength <= PART_BYTES && (await this.#addAtOnce(digest, bytes))) return digest;
    for (let offset = 0; ;) {
      const data = Buffer.from(bytes.subarray(offset, offset + PART_BYTES)).toString('base64');
      const { complete, have } = await this.put({ digest, bytes: bytes.byteLength, offset, data });
      if (complete) return digest;
      offset = have;
    }
  }

  /** Stores several that this process holds whole, those that fit into a part together. */
  async addAll(all: ReadonlyMap<string, Uint8Array>): Promise<void> {
    const sizes = [...all].map(([digest, bytes]) => ({ digest, bytes: bytes.byteLength }));
    const small = (await this.missing(sizes)).flatMap((digest) => {
      const bytes = all.get(digest);
      return bytes === undefined || bytes.byteLength > PART_BYTES ? [] : [{ digest, bytes }];
    });
    for (let from = 0; from < small.length; from += TOGETHER) {
      const given = small.slice(from, from + TOGETHER).map(({ digest, bytes }) => ({
        digest,
        bytes: bytes.byteLength,
        data: Buffer.from(bytes).toString('base64'),
      }));
      await this.db.$executeRawUnsafe(
        `WITH given AS (SELECT * FROM json_to_recordset($1::json) AS g("digest" text, "bytes" int, "data" text)),
              fresh AS (INSERT INTO ${this.#schema}."blob" ("digest", "bytes", "have", "complete")
                        SELECT "digest", "bytes", "bytes", true FROM given ON CONFLICT DO NOTHING RETURNING "digest")
         INSERT INTO ${this.#schema}."blob_chunk" ("digest", "offset", "data")
         SELECT "digest", 0, decode("data", 'base64') FROM given JOIN fresh USING ("digest") WHERE "bytes" > 0`,
        JSON.stringify(given),
      );
    }
    // Large ones, and those that somebody else is half through uploading.
    for (const digest of await this.missing(sizes)) await this.add(all.get(digest) ?? new Uint8Array());
  }

  /** How many bytes a complete blob has, or undefined. */
  async size(digest: string): Promise<number | undefined> {
    const { complete, have } = await this.#state(digest);
    return complete ? have : undefined;
  }

  /** The whole of a complete blob, or undefined. */
  async read(digest: string): Promise<Buffer | undefined> {
    const { complete } = await this.#state(digest);
    return complete ? this.#bytes(digest) : undefined;
  }

  /** Which of these files' bytes are not here, or have another size than their entry says. */
  async missing(files: readonly Pick<FileEntry, 'digest' | 'bytes'>[]): Promise<string[]> {
    const rows = await this.db.$queryRawUnsafe<{ digest: string; bytes: number }[]>(
      `SELECT "digest", "bytes" FROM ${this.#schema}."blob" WHERE "complete" AND "digest" = ANY($1)`,
      files.map((file) => file.digest),
    );
    const sizes = new Map(rows.map((row) => [row.digest, row.bytes]));
    return [...new Set(files.filter((file) => sizes.get(file.digest) !== file.bytes).map((file) => file.digest))];
  }

  /** One statement for what fits into one part; false where some of it is there already. */
  async #addAtOnce(digest: string, bytes: Uint8Array): Promise<boolean> {
    const added = await this.db.$executeRawUnsafe(
      `WITH added AS (INSERT INTO ${this.#schema}."blob" ("digest", "bytes", "have", "complete") VALUES ($1, $2, $2, true) ON CONFLICT DO NOTHING RETURNING 1)
       INSERT INTO ${this.#schema}."blob_chunk" ("digest", "offset", "data") SELECT $1, 0, $3 WHERE EXISTS (SELECT 1 FROM added)`,
      digest,
      bytes.byteLength,
      Buffer.from(bytes),
    );
    return added > 0;
  }

  async #close(digest: string, bytes: number): Promise<Returns<typeof skillStore.putBlob>> {
    const content = await this.#bytes(digest);
    if (digestOfBytes(content) === digest) {
      await this.db.$executeRawUnsafe(`UPDATE ${this.#schema}."blob" SET "complete" = true WHERE "digest" = $1`, digest);
      return { have: bytes, complete: true };
    }
    await this.db.$executeRawUnsafe(`DELETE FROM ${this.#schema}."blob" WHERE "digest" = $1 AND NOT "complete"`, digest);
    throw fault(skillStore.putBlob, 'BLOB_DIGEST');
  }

  async #state(digest: string): Promise<{ readonly have: number; readonly complete: boolean }> {
    const [row] = await this.db.$queryRawUnsafe<{ have: number; complete: boolean }[]>(
      `SELECT "have", "complete" FROM ${this.#schema}."blob" WHERE "digest" = $1`,
      digest,
    );
    return row ?? { have: 0, complete: false };
  }

  async #bytes(digest: string): Promise<Buffer> {
    const rows = await this.db.$queryRawUnsafe<{ data: Uint8Array }[]>(
      `SELECT "data" FROM ${this.#schema}."blob_chunk" WHERE "digest" = $1 ORDER BY "offset"`,
      digest,
    );
    return Buffer.concat(rows.map((row) => row.data));
  }
}

const PART_BYTES = 256 * 1024;
/** Blobs of one statement: 16 MiB at most. */
const TOGETHER = 64;
