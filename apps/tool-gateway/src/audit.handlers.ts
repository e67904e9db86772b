import { Answers } from '@ambit/bus';
import { toolGateway, type Output, type Parsed } from '@ambit/contracts';
import { AuditTrail } from '@ambit/db';
import { Controller, Inject } from '@nestjs/common';

@Controller()
export class AuditHandlers {
  constructor(@Inject(AuditTrail) private readonly trail: AuditTrail) {}

  @Answers(toolGateway.listAudit)
  async list({ after, limit }: Parsed<typeof toolGateway.listAudit>): Promise<Output<typeof toolGateway.listAudit>> {
    return { items: await this.trail.after(after, limit) };
  }
}
