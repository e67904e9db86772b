import { Bus } from '@ambit/bus';
import { ContentBlock, platformFault, toolGateway, type CallResult } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { z } from 'zod';
import type { Caller } from './edge-tokens.service.js';

const PART = 256 * 1024;
/** A larger result stays where it is: a client that can take it reads it there. */
const MAX_BYTES = 16 * 1024 * 1024;
const Whole = z.object({ content: z.array(ContentBlock), structuredContent: z.unknown().optional() });

/** Large results, read from where the gateway keeps them. */
@Injectable()
export class Artifacts {
  constructor(private readonly bus: Bus) {}

  async read(
    sessionId: string,
    { digest, bytes }: NonNullable<CallResult['artifact']>,
    { identity }: Caller,
  ): Promise<Pick<CallResult, 'content' | 'structuredContent'>> {
    if (bytes > MAX_BYTES)
      throw platformFault(
        'TOO_LARGE',
        { limitBytes: MAX_BYTES, actualBytes: bytes },
        `The call has happened; its result has ${bytes} bytes, more than is sent`,
      );
    const parts: Buffer[] = [];
    for (let offset: number | null = 0; offset !== null;) {
      const page: { data: string; next: number | null } = await this.bus.call(
        toolGateway.getArtifact,
        { sessionId, digest, offset, length: PART },
        identity,
      );
      parts.push(Buffer.from(page.data, 'base64'));
      offset = page.next;
    }
    return Whole.parse(JSON.parse(Buffer.concat(parts).toString('utf8')));
  }
}
