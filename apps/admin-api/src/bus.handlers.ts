import { Answers, Hears, type Call } from '@ambit/bus';
import {
  adminApi,
  mcpBroker,
  pluginRegistry,
  sessionService,
  skillStore,
  toolGateway,
  type AuditAppended,
  type Parsed,
  type Payload,
} from '@ambit/contracts';
import { Controller } from '@nestjs/common';
import { AuditService } from './audit.service.js';
import { EdgeTokenService } from './edge-token.service.js';
import { NotifyService } from './notify.service.js';
import { RenewalService } from './renewal.service.js';

/** Each call leaves a record; their order is in their numbers. */
const MANY = { concurrency: 8 };
const FEW = { concurrency: 4 };

/** What this service answers and hears on the bus. */
@Controller()
export class BusHandlers {
  constructor(
    private readonly renewal: RenewalService,
    private readonly edge: EdgeTokenService,
    private readonly audit: AuditService,
    private readonly notify: NotifyService,
  ) {}

  @Answers(adminApi.renewCredential) renew(input: Parsed<typeof adminApi.renewCredential>, call: Call<typeof adminApi.renewCredential>) {
    return this.renewal.renew(input, call);
  }

  @Answers(adminApi.resolveEdgeToken) resolve({ hash }: Parsed<typeof adminApi.resolveEdgeToken>) {
    return this.edge.resolve(hash);
  }

  @Answers(adminApi.issueRunToken) issue(input: Parsed<typeof adminApi.issueRunToken>, call: Call) {
    return this.edge.issueForRun(input, call);
  }

  @Hears(sessionService.interactionRequested, FEW) requested(event: Payload<typeof sessionService.interactionRequested>) {
    return this.notify.requested(event);
  }

  @Hears(toolGateway.callParked, FEW) parked(event: Payload<typeof toolGateway.callParked>) {
    return this.notify.parked(event);
  }

  @Hears(sessionService.auditAppended, MANY)
  @Hears(toolGateway.auditAppended, MANY)
  @Hears(mcpBroker.auditAppended, MANY)
  @Hears(skillStore.auditAppended, MANY)
  @Hears(pluginRegistry.auditAppended, MANY)
  @Hears(adminApi.auditAppended, MANY)
  audited({ records }: AuditAppended) {
    return this.audit.add(records);
  }
}
