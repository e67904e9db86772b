import { Answers } from '@ambit/bus';
import { toolGateway, type Output, type Parsed } from '@ambit/contracts';
import { Controller, Inject } from '@nestjs/common';
import { SessionRemains } from './session.remains.js';

@Controller()
export class SessionHandlers {
  constructor(@Inject(SessionRemains) private readonly remains: SessionRemains) {}

  @Answers(toolGateway.clearSession)
  clear(input: Parsed<typeof toolGateway.clearSession>): Promise<Output<typeof toolGateway.clearSession>> {
    return this.remains.clear(input);
  }
}
