import { Bus, type Call } from '@ambit/bus';
import { fault, Fault, mcpBroker, pluginRegistry, skillStore } from '@ambit/contracts';
import { Injectable } from '@nestjs/common';
import { PluginBlobs } from './blobs.js';
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
  ) {}

  async contribute(found: Package, place: { readonly projectId: string; readonly set: string | null }, call: Call): Promise<Contributed> {
    const { undeclared } = found.manifest;
    if (undeclared.length > 0)
      throw fault(pluginRegistry.enablePlugin, 'ACTIVATION_FAILED', {
        step: 'capabilities',
        reason: `it contributes what it did not declare: ${undeclared.join(', ')}`,
      });
    const skills = await this.step('skills', () => this.skills(found, place.projectId, call));
    const servers = await this.step('servers', () => this.servers(found, place, call));
    return { skills, servers };
  }

  private async skills({ manifest, tree }: Package, projectId: string, call: Call): Promise<string[]> {
    if (manifest.skills.length === 0) return [];
    const skills = manifest.skills.map((folder) => ({ files: skillFiles(tree, folder) }));
    for (const { files } of skills) for (const file of files) await this.upload(file.digest, call);
    const { names } = await this.bus.call(
      skillStore.putContribution,
      { owner: `plugin:${manifest.id}`, projectId, skills },
      { within: call },
    );
    return names;
  }

  private async servers(
    { manifest, digest, tree }: Package,
    place: { readonly projectId: string; readonly set: string | null },
    call: Call,
  ): Promise<string[]> {
    const slugs: string[] = [];
    for (const server of manifest.servers) {
      const packaged = await this.packaged(server, tree);
      const spec = { ...serverSpec(manifest, server, { ...place, digest }), ...(packaged === undefined ? {} : { packaged }) };
      const { slug } = await this.bus.call(mcpBroker.putServer, spec, { within: call });
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

  private async upload(digest: string, call: Call): Promise<void> {
    const bytes = (await this.blobs.read(digest)) ?? new Uint8Array();
    for (let offset = 0; ;) {
      const data = Buffer.from(bytes.subarray(offset, offset + PART_BYTES)).toString('base64');
      const { complete, have } = await this.bus.call(
        skillStore.putBlob,
        { digest, bytes: bytes.byteLength, offset, data },
        { within: call },
      );
      if (complete) return;
      offset = have;
    }
  }

  private async step<T>(step: string, run: () => Promise<T>): Promise<T> {
    try {
      return await run();
    } catch (error) {
      if (error instanceof Fault)
        throw fault(pluginRegistry.enablePlugin, 'ACTIVATION_FAILED', {
          step,
          reason: `${error.code}: ${error.message} ${error.data === undefined ? '' : JSON.stringify(error.data)}`.trim().slice(0, 1_000),
        });
      throw error;
    }
  }
}
