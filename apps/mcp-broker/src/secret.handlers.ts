import { Answers, type Call } from '@ambit/bus';
import { mcpBroker, type Parsed } from '@ambit/contracts';
import { Controller, Inject } from '@nestjs/common';
import { SecretService } from './secret.service.js';

@Controller()
export class SecretHandlers {
  constructor(@Inject(SecretService) private readonly secrets: SecretService) {}

  @Answers(mcpBroker.putSecret) put(input: Parsed<typeof mcpBroker.putSecret>, call: Call) {
    return this.secrets.put(input, call);
  }
  @Answers(mcpBroker.signWithSecret) sign(input: Parsed<typeof mcpBroker.signWithSecret>) {
    return this.secrets.sign(input);
  }
  @Answers(mcpBroker.listSecrets) list(input: Parsed<typeof mcpBroker.listSecrets>) {
    return this.secrets.list(input);
  }
  @Answers(mcpBroker.deleteSecret) delete(input: Parsed<typeof mcpBroker.deleteSecret>, call: Call) {
    return this.secrets.delete(input, call);
  }
}
