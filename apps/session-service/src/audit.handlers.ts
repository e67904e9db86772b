import { Answers } from '@ambit/bus';
import { sessionService, type Output, type Parsed } from '@ambit/contracts';
import { AuditTrail } from '@ambit/db';
import { Controller, Inject } from '@nestjs/common';

@Controller()
export class AuditHandlers {
  constructor(@Inject(AuditTrail) private readonly trail: AuditTrail) {}

  @Answers(sessionService.listAudit)
  async list({ after, limit }: Parsed<typeof sessionService.listAudit>): Promise<Output<typeof sessionService.listAudit>> {
    return { items: await this.trail.after(after, limit) };
  }
}
