import { Answers } from '@ambit/bus';
import { mcpBroker, type Output, type Parsed } from '@ambit/contracts';
import { AuditTrail } from '@ambit/db';
import { Controller, Inject } from '@nestjs/common';

@Controller()
export class AuditHandlers {
  constructor(@Inject(AuditTrail) private readonly trail: AuditTrail) {}

  @Answers(mcpBroker.listAudit)
  async list({ after, limit }: Parsed<typeof mcpBroker.listAudit>): Promise<Output<typeof mcpBroker.listAudit>> {
    return { items: await this.trail.after(after, limit) };
  }
}
