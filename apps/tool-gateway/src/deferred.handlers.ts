import { Works, type Delivery } from '@ambit/bus';
import { toolGateway, type DeferredCall } from '@ambit/contracts';
import { Controller, Inject } from '@nestjs/common';
import { DeferredService } from './deferred.service.js';

@Controller()
export class DeferredHandlers {
  constructor(@Inject(DeferredService) private readonly deferred: DeferredService) {}

  @Works(toolGateway.executeDeferred)
  execute(job: DeferredCall, delivery: Delivery<typeof toolGateway.executeDeferred>): Promise<void> {
    return this.deferred.execute(job, delivery);
  }
}
