import { Answers, Listens, type IncomingSignal } from '@ambit/bus';
import { mcpBroker, mcpRunner, type Parsed, type Payload } from '@ambit/contracts';
import { Controller, Inject } from '@nestjs/common';
import { InstanceService } from './instance.service.js';

@Controller()
export class InstanceHandlers {
  constructor(@Inject(InstanceService) private readonly instances: InstanceService) {}

  @Answers(mcpRunner.startInstance) start(input: Parsed<typeof mcpRunner.startInstance>) {
    return this.instances.start(input);
  }

  @Listens(mcpBroker.cancelCall) cancel(
    payload: Payload<typeof mcpBroker.cancelCall>,
    signal: IncomingSignal<typeof mcpBroker.cancelCall>,
  ) {
    this.instances.cancel(signal.keys.instanceId, payload.operationId);
  }

  @Listens(mcpBroker.closeInstance) close(payload: Payload<typeof mcpBroker.closeInstance>) {
    return this.instances.closeServer(payload);
  }
}
