import { Bus, type Call } from '@ambit/bus';
import { Fault, mcpBroker, skillStore, type PlatformCode } from '@ambit/contracts';
import { CONFIG } from '@ambit/service';
import { Inject, Injectable } from '@nestjs/common';
import { PluginBlobs } from './blobs.js';
import type { PluginRegistryConfig } from './config.js';
import { serverSpec, skillFiles } from './domain/contributions.js';
import { readCatalogue, type ListedTool } from './domain/catalogue.js';
import type { PluginServer } from './domain/server-transport.js';
import type { Package } from './plugin.repository.js';

const PART_BYTES = 256 * 1024;

export interface Contributed {
  readonly servers: string[];
  readonly skills: string[];
}

/** Hands a package's skills and servers to their owners. What was contributed before a failure is the caller's to revoke. */
@Injectable()
export class ActivationService {
  constructor(
    private readonly bus: Bus,
    private readonly blobs: PluginBlobs,
    @Inject(CONFIG) private readonly config: PluginRegistryConfig,
  ) {}

  async contribute(
    found: Package,
    place: { readonly projectId: string; readonly set: string | null },
    within: Call | undefined,
  ): Promise<Contributed> {
    const { undeclared } = found.manifest;
    if (undeclared.length > 0)
      throw new StepFailed('capabilities', `it contributes what it did not declare: ${undeclared.join(', ')}`, { isCertain: true });
    const skills = await this.step('skills', () => this.skills(found, place.projectId, within));
    const servers = await this.step('servers', () => this.servers(found, place, within));
    return { skills, servers };
  }

  private async skills({ manifest, tree }: Package, projectId: string, within: Call | undefined): Promise<string[]> {
    if (manifest.skills.length === 0) return [];
    const skills = manifest.skills.map((folder) => ({ files: skillFiles(tree, folder) }));
    for (const { files } of skills) for (const file of files) await this.upload(file.digest, within);
    const { names } = await this.bus.call(
      skillStore.putContribution,
      { owner: `plugin:${manifest.id}`, projectId, skills },
      sendingOf(within),
    );
    return names;
  }

  private async servers(
    { manifest, digest, tree }: Package,
    place: { readonly projectId: string; readonly set: string | null },
    within: Call | undefined,
  ): Promise<string[]> {
    const slugs: string[] = [];
    for (const server of manifest.servers) {
      const packaged = await this.packaged(server, tree);
      const holdChanges = this.config.AMBIT_PLUGIN_HOLD_CHANGES === '1';
      const spec = { ...serverSpec(manifest, server, { ...place, digest }), holdChanges, ...(packaged === undefined ? {} : { packaged }) };
      const { slug } = await this.bus.call(mcpBroker.putServer, spec, sendingOf(within));
      slugs.push(slug);
    }
    return slugs;
  }

  /** The tools of a server as its package lists them: with them it need not be started before its first call. */
  private async packaged({ catalogue }: PluginServer, tree: Package['tree']): Promise<ListedTool[] | undefined> {
    const file = tree.find(({ path }) => path === catalogue);
    const bytes = file === undefined ? undefined : await this.blobs.read(file.digest);
    const tools = bytes === undefined ? undefined : readCatalogue(bytes.toString('utf8')).tools;
    return tools === undefined ? undefined : [...tools];
  }

  private async upload(digest: string, within: Call | undefined): Promise<void> {
    const bytes = (await this.blobs.read(digest)) ?? new Uint8Array();
    for (let offset = 0; ;) {
      const data = Buffer.from(bytes.subarray(offset, offset + PART_BYTES)).toString('base64');
      const { complete, have } = await this.bus.call(
        skillStore.putBlob,
        { digest, bytes: bytes.byteLength, offset, data },
        sendingOf(within),
      );
      if (complete) return;
      offset = have;
    }
  }

  private async step<T>(step: string, run: () => Promise<T>): Promise<T> {
    try {
      return await run();
    } catch (error) {
      if (error instanceof Fault) throw refused(step, error);
      throw error;
    }
  }
}

const sendingOf = (within: Call | undefined) => (within === undefined ? {} : { within });

/** An owner would not take what it was handed; where that is certain, it will not take it the next time either. */
export class StepFailed extends Error {
  override readonly name = 'StepFailed';
  readonly isCertain: boolean;
  constructor(
    readonly step: string,
    readonly reason: string,
    { isCertain }: { readonly isCertain: boolean },
  ) {
    super(`${step}: ${reason}`);
    this.isCertain = isCertain;
  }
}

/** They say nothing about what was handed over. */
const UNCERTAIN: ReadonlySet<string> = new Set<PlatformCode>(['UNAVAILABLE', 'TIMEOUT', 'CANCELLED', 'INTERNAL']);

function refused(step: string, { code, message, data, retry }: Fault): StepFailed {
  const reason = `${code}: ${message} ${data === undefined ? '' : JSON.stringify(data)}`.trim().slice(0, 1_000);
  return new StepFailed(step, reason, { isCertain: retry === 'never' && !UNCERTAIN.has(code) });
}
