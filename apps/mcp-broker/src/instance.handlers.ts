import { Answers, Listens, type Call, type IncomingSignal } from '@ambit/bus';
import { mcpBroker, mcpRunner, type Parsed, type Payload } from '@ambit/contracts';
import { Controller, Inject } from '@nestjs/common';
import { InstanceService } from './instance.service.js';

@Controller()
export class InstanceHandlers {
  constructor(@Inject(InstanceService) private readonly instances: InstanceService) {}

  @Answers(mcpBroker.ensureInstance) ensure(input: Parsed<typeof mcpBroker.ensureInstance>, call: Call<typeof mcpBroker.ensureInstance>) {
    return this.instances.ensure(call.keys.serverId, input);
  }
  @Listens(mcpBroker.cancelCall) cancel(
    payload: Payload<typeof mcpBroker.cancelCall>,
    signal: IncomingSignal<typeof mcpBroker.cancelCall>,
  ) {
    this.instances.cancel(signal.keys.instanceId, payload.operationId);
  }
  @Listens(mcpBroker.closeInstance) close(payload: Payload<typeof mcpBroker.closeInstance>) {
    return this.instances.closeHere(payload);
  }
  @Listens(mcpRunner.instanceChanged) changed(
    payload: Payload<typeof mcpRunner.instanceChanged>,
    signal: IncomingSignal<typeof mcpRunner.instanceChanged>,
  ) {
    return this.instances.changed(signal.keys.serverId, payload);
  }
}
