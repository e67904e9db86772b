import { Answers, Hears, type Call } from '@ambit/bus';
import {
  adminApi,
  mcpBroker,
  pluginRegistry,
  sessionService,
  skillStore,
  toolGateway,
  type AuditRecord,
  type Parsed,
} from '@ambit/contracts';
import { Controller } from '@nestjs/common';
import { AuditRepository } from './audit.repository.js';
import { RenewalService } from './renewal.service.js';

/** What this service answers and hears on the bus. */
@Controller()
export class BusHandlers {
  constructor(
    private readonly renewal: RenewalService,
    private readonly audit: AuditRepository,
  ) {}

  @Answers(adminApi.renewCredential) renew(input: Parsed<typeof adminApi.renewCredential>, call: Call<typeof adminApi.renewCredential>) {
    return this.renewal.renew(input, call);
  }

  @Hears(sessionService.auditAppended)
  @Hears(toolGateway.auditAppended)
  @Hears(mcpBroker.auditAppended)
  @Hears(skillStore.auditAppended)
  @Hears(pluginRegistry.auditAppended)
  @Hears(adminApi.auditAppended)
  audited(record: AuditRecord) {
    return this.audit.add(record);
  }
}
