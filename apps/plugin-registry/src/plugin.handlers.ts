import { Answers, type Call } from '@ambit/bus';
import { pluginRegistry, type Parsed } from '@ambit/contracts';
import { Controller } from '@nestjs/common';
import { PluginBlobs } from './blobs.js';
import { PackageService } from './package.service.js';
import { PluginService } from './plugin.service.js';
import { PublisherService } from './publisher.service.js';

const p = pluginRegistry;

@Controller()
export class PluginHandlers {
  constructor(
    private readonly blobs: PluginBlobs,
    private readonly plugins: PluginService,
    private readonly packages: PackageService,
    private readonly publishers: PublisherService,
  ) {}

  @Answers(p.putBlob) putBlob(input: Parsed<typeof p.putBlob>) {
    return this.blobs.put(input);
  }
  @Answers(p.installPlugin) install(input: Parsed<typeof p.installPlugin>, call: Call<typeof p.installPlugin>) {
    return this.plugins.install(input, call);
  }
  @Answers(p.getPlugin) get(input: Parsed<typeof p.getPlugin>) {
    return this.plugins.get(input.id);
  }
  @Answers(p.listPlugins) list(input: Parsed<typeof p.listPlugins>) {
    return this.plugins.list(input);
  }
  @Answers(p.enablePlugin) enable(input: Parsed<typeof p.enablePlugin>, call: Call<typeof p.enablePlugin>) {
    return this.plugins.enable(input.id, call);
  }
  @Answers(p.disablePlugin) disable(input: Parsed<typeof p.disablePlugin>, call: Call<typeof p.disablePlugin>) {
    return this.plugins.disable(input.id, call);
  }
  @Answers(p.uninstallPlugin) uninstall(input: Parsed<typeof p.uninstallPlugin>, call: Call<typeof p.uninstallPlugin>) {
    return this.plugins.uninstall(input.id, call);
  }
  @Answers(p.pluginSlots) slots(input: Parsed<typeof p.pluginSlots>) {
    return this.plugins.slots(input);
  }
  @Answers(p.readPackage) readPackage(input: Parsed<typeof p.readPackage>) {
    return this.packages.read(input);
  }
  @Answers(p.trustPublisher) trust(input: Parsed<typeof p.trustPublisher>, call: Call<typeof p.trustPublisher>) {
    return this.publishers.trust(input, call);
  }
  @Answers(p.listPublishers) listPublishers(input: Parsed<typeof p.listPublishers>) {
    return this.publishers.list(input);
  }
  @Answers(p.distrustPublisher) distrust(input: Parsed<typeof p.distrustPublisher>, call: Call<typeof p.distrustPublisher>) {
    return this.publishers.distrust(input, call);
  }
}
