import { CONFIG, VERSION } from '@ambit/service';
import { Inject, Injectable } from '@nestjs/common';
import type { PluginRegistryConfig } from './config.js';
import type { Here } from './domain/package-files.js';

/** Where servers of plugins run. */
@Injectable()
export class HereService {
  readonly here: Here;
  constructor(@Inject(CONFIG) config: PluginRegistryConfig) {
    const [platform = process.platform, arch = process.arch] = config.AMBIT_PLUGIN_PLATFORM?.split('/') ?? [];
    this.here = { platform, arch, version: VERSION };
  }
}
