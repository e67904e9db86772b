import { Answers } from '@ambit/bus';
import { pluginRegistry, type Output, type Parsed } from '@ambit/contracts';
import { AuditTrail } from '@ambit/db';
import { Controller, Inject } from '@nestjs/common';

@Controller()
export class AuditHandlers {
  constructor(@Inject(AuditTrail) private readonly trail: AuditTrail) {}

  @Answers(pluginRegistry.listAudit)
  async list({ after, limit }: Parsed<typeof pluginRegistry.listAudit>): Promise<Output<typeof pluginRegistry.listAudit>> {
    return { items: await this.trail.after(after, limit) };
  }
}
