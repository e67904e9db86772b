import { DB, type GatewayDb } from '@ambit/db';
import { Inject, Injectable } from '@nestjs/common';

export interface ArtifactName {
  readonly sessionId: string;
  readonly digest: string;
}

/** Which artifacts exist and until when, and the parts of uploads that are not closed. */
@Injectable()
export class ArtifactRepository {
  constructor(@Inject(DB) private readonly db: GatewayDb) {}

  async put(name: ArtifactName, bytes: number, expiresAt: Date): Promise<void> {
    await this.db.gatewayArtifact.upsert({
      where: { sessionId_digest: { ...name } },
      create: { ...name, bytes, expiresAt },
      update: { expiresAt },
    });
  }

  find(name: ArtifactName, now: Date): Promise<{ bytes: number } | null> {
    return this.db.gatewayArtifact.findFirst({ where: { ...name, expiresAt: { gt: now } }, select: { bytes: true } });
  }

  expired(now: Date, limit: number): Promise<ArtifactName[]> {
    return this.db.gatewayArtifact.findMany({
      where: { expiresAt: { lte: now } },
      select: { sessionId: true, digest: true },
      orderBy: { expiresAt: 'asc' },
      take: limit,
    });
  }

  ofSession(sessionId: string): Promise<ArtifactName[]> {
    return this.db.gatewayArtifact.findMany({ where: { sessionId }, select: { sessionId: true, digest: true } });
  }

  async dropUploads(sessionId: string): Promise<void> {
    await this.db.gatewayUploadPart.deleteMany({ where: { sessionId } });
  }

  async remove(name: ArtifactName): Promise<void> {
    await this.db.gatewayArtifact.deleteMany({ where: { ...name } });
  }

  /** Keeps a part; a repeated part replaces itself. Gives the bytes kept of this upload. */
  async putPart(upload: { readonly sessionId: string; readonly uploadId: string }, position: number, data: Uint8Array): Promise<number> {
    const copy = new Uint8Array(data);
    await this.db.gatewayUploadPart.upsert({
      where: { sessionId_uploadId_position: { ...upload, position } },
      create: { ...upload, position, data: copy },
      update: { data: copy },
    });
    const [row] = await this.db.$queryRaw<
      { bytes: bigint }[]
    >`SELECT coalesce(sum(length("data")), 0) AS bytes FROM "tool_gateway"."upload_part" WHERE "session_id" = ${upload.sessionId}::uuid AND "upload_id" = ${upload.uploadId}::uuid`;
    return Number(row?.bytes ?? 0);
  }

  parts(upload: { readonly sessionId: string; readonly uploadId: string }): Promise<{ position: number; data: Uint8Array }[]> {
    return this.db.gatewayUploadPart.findMany({
      where: { ...upload },
      select: { position: true, data: true },
      orderBy: { position: 'asc' },
    });
  }

  async dropParts(upload: { readonly sessionId: string; readonly uploadId: string }): Promise<void> {
    await this.db.gatewayUploadPart.deleteMany({ where: { ...upload } });
  }

  async dropPartsBefore(moment: Date): Promise<void> {
    await this.db.gatewayUploadPart.deleteMany({ where: { createdAt: { lt: moment } } });
  }
}
