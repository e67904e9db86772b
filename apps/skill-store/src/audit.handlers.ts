import { Answers } from '@ambit/bus';
import { skillStore, type Output, type Parsed } from '@ambit/contracts';
import { AuditTrail } from '@ambit/db';
import { Controller, Inject } from '@nestjs/common';

@Controller()
export class AuditHandlers {
  constructor(@Inject(AuditTrail) private readonly trail: AuditTrail) {}

  @Answers(skillStore.listAudit)
  async list({ after, limit }: Parsed<typeof skillStore.listAudit>): Promise<Output<typeof skillStore.listAudit>> {
    return { items: await this.trail.after(after, limit) };
  }
}
