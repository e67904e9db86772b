import { Injectable } from '@nestjs/common';
import { PluginBlobs } from './blobs.js';
import { platformProblem } from './domain/platform.js';
import { HereService } from './here.service.js';
import type { Package } from './plugin.repository.js';
import { VerificationService, type Signer } from './verification.service.js';

const NAMED = 3;

/** Whether a package can work here now. */
@Injectable()
export class Availability {
  constructor(
    private readonly blobs: PluginBlobs,
    private readonly here: HereService,
    private readonly verification: VerificationService,
  ) {}

  /** A sentence that says why not; null where it can. */
  async problemOf({ manifest, tree }: Package, signer: Pick<Signer, 'signedBy' | 'signingKey'>): Promise<string | null> {
    return platformProblem(manifest, this.here.here) ?? (await this.verification.problemOf(signer)) ?? (await this.lostFiles(tree));
  }

  private async lostFiles(tree: Package['tree']): Promise<string | null> {
    const missing = new Set(await this.blobs.missing(tree));
    const files = tree.filter(({ digest }) => missing.has(digest)).map(({ path }) => path);
    if (files.length === 0) return null;
    const more = files.length > NAMED ? ` and ${files.length - NAMED} more` : '';
    return `the package has lost files: ${files.slice(0, NAMED).join(', ')}${more}; install it again`.slice(0, 1_000);
  }
}
